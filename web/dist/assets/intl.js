// The first formatter of a page takes 30 ms, and the next ones less than 1 ms. This script blocks the parser, so that it is made while the modules are on their way and not after the first paint.
new Intl.NumberFormat(navigator.language).format(0);
new Intl.DateTimeFormat(navigator.language).format(0);
