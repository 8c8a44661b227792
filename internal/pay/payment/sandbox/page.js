// Times of the page as the reader's clock shows them, in the format of the shop; without scripts they are in UTC.
const format = { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' };
for (const time of document.querySelectorAll('time')) {
  time.textContent = new Date(time.dateTime).toLocaleString(document.documentElement.lang, format);
}
