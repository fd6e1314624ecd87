"""The pages at the door. What allauth has beyond these is not reachable."""

from __future__ import annotations

from allauth.account import views
from allauth.mfa.base import views as second_factor
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from django.urls import path, re_path
from django.views.decorators.cache import never_cache

from klerai.accounts import email_pages, session_pages, social_pages
from klerai.accounts.second_factor_pages import SecondStep, download_recovery_codes, sign_in_settings
from klerai.accounts.views import Signup, VerificationSent

urlpatterns = [
    path("signup/", Signup.as_view(), name="account_signup"),
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("confirm-email/", VerificationSent.as_view(), name="account_email_verification_sent"),
    re_path(r"^confirm-email/(?P<key>[-:\w]+)/$", views.confirm_email, name="account_confirm_email"),
    path("password/change/", views.password_change, name="account_change_password"),
    path("password/set/", views.password_set, name="account_set_password"),
    path("password/reset/", views.password_reset, name="account_reset_password"),
    path("password/reset/done/", views.password_reset_done, name="account_reset_password_done"),
    re_path(
        r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        views.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "password/reset/key/done/",
        views.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("second-factor/", sign_in_settings, name="mfa_index"),
    path("second-factor/code/", SecondStep.as_view(), name="mfa_authenticate"),
    path("second-factor/confirm/", never_cache(second_factor.reauthenticate), name="mfa_reauthenticate"),
    path("second-factor/on/", never_cache(totp.activate_totp), name="mfa_activate_totp"),
    path("second-factor/off/", never_cache(totp.deactivate_totp), name="mfa_deactivate_totp"),
    path("second-factor/codes/", never_cache(recovery_codes.view_recovery_codes), name="mfa_view_recovery_codes"),
    path("second-factor/codes/file/", download_recovery_codes, name="mfa_download_recovery_codes"),
    path(
        "second-factor/codes/new/",
        never_cache(recovery_codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path("email/", email_pages.new_email, name="account_email"),
    path("email/again/", email_pages.send_again, name="account_email_again"),
    path("email/keep/", email_pages.give_up, name="account_email_keep"),
    path("email/confirm/<str:key>/", email_pages.confirm_email, name="account_confirm_new_email"),
    *social_pages.urlpatterns,
    path("sessions/others/end/", session_pages.sign_out_others, name="end-other-sessions"),
    path("sessions/<int:session_id>/end/", session_pages.sign_out_one, name="end-session"),
]
