// The first formatter of a page takes 30 ms, and the next ones less than 1 ms: it is made while the scripts of the shop are loading.
new Intl.NumberFormat(navigator.language).format(0);
new Intl.DateTimeFormat(navigator.language).format(0);
