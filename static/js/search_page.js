/* The search page: choosing another knowledge base searches there, when there is something to search for. */

const form = document.querySelector(".search-form");
form?.querySelector("select").addEventListener("change", () => { if (form.querySelector("input").value.trim()) form.requestSubmit(); });
