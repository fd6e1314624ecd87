"""The pages of the second factor that allauth does not have, or has for more kinds than there are here."""

from __future__ import annotations

import hmac

from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.models import Authenticator
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST


class SecondStep(AuthenticateView):  # type: ignore[misc]  # allauth is untyped
    """Of a sign-in. allauth's takes a form without a code for a security key, which nobody has here."""

    def _build_forms(self) -> Form | None:
        is_sent = self.request.method == "POST"
        self.webauthn_form = None
        self.auth_form = self.get_form_class()(user=self.stage.login.user, data=self.request.POST if is_sent else None)
        return self.auth_form if is_sent else None


@never_cache
@sensitive_post_parameters("codes")
@sensitive_variables("shown", "codes")
@login_required
@require_POST
def download_recovery_codes(request: HttpRequest) -> HttpResponse:
    """A file of the codes for the page that shows them, which sends them along: nobody else can."""
    shown = request.POST.get("codes", "")
    found = Authenticator.objects.filter(user=request.user, type=Authenticator.Type.RECOVERY_CODES).first()
    codes = " ".join(found.wrap().get_unused_codes()) if found else ""
    if not codes or not hmac.compare_digest(shown.encode(), codes.encode()):
        raise Http404
    lines = ["KlerAI recovery codes. Each signs you in once, without the app.", "", *codes.split(), ""]
    response = HttpResponse("\n".join(lines), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="klerai-recovery-codes.txt"'
    return response


def sign_in_settings(request: HttpRequest) -> HttpResponse:
    """Where allauth goes when it is done: the settings have what its own overview would show."""
    return redirect("settings")
