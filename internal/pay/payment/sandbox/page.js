// Times of the page as the reader's clock shows them; without scripts they are in UTC.
for (const time of document.querySelectorAll('time')) {
  time.textContent = new Date(time.dateTime).toLocaleString(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'medium' });
}
