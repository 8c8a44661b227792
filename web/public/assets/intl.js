// The first formatter of a browser takes 40 ms: it is made while the scripts of the shop are on their way.
new Intl.NumberFormat(navigator.language).format(0);
new Intl.DateTimeFormat(navigator.language).format(0);
