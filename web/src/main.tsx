import { render } from 'preact';
import { startClock, sync } from './api/clock';
import { person, restore } from './api/session';
import { startWake } from './api/wake';
import { App, preloadPage } from './app';
import { loadTexts } from './i18n/text';
import { waitingFor } from './purchase/places';
import './style.css';

startClock();
startWake();
void restore().then(() => {
  // A place in a waiting room is kept by being followed; the code for it comes with the sale's page.
  const waits = person.peek() && waitingFor().length > 0;
  if (waits) void import('./purchase/attempt').then((module) => module.resumePlaces());
});
void sync();
await Promise.all([loadTexts(), preloadPage(location.pathname)]);
render(<App />, document.getElementById('app')!);
