/* Swagger UI, from its Python package, over our own description; what is tried goes to our own server alone. */
import { csrfToken } from "./net.js";

const chosen = document.documentElement.dataset.theme;
const system = matchMedia("(prefers-color-scheme: dark)");
const dress = () => document.documentElement.classList.toggle("dark-mode", chosen ? chosen === "dark" : system.matches);

dress();
system.addEventListener("change", dress);

window.SwaggerUIBundle({
  domNode: document.getElementById("api"),
  url: document.getElementById("api").dataset.schema,
  deepLinking: true,
  validatorUrl: null,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  requestInterceptor(request) {
    if (request.method !== "GET" && !request.headers.Authorization) request.headers["X-CSRFToken"] = csrfToken();
    return request;
  },
});
