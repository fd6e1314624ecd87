/* Tells the sign-in and sign-up forms which time zone the browser is in; the server checks the name. */
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";

for (const field of document.querySelectorAll('form[data-zone-form] input[name="time_zone"]')) field.value = zone;
