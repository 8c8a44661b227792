import { render } from 'preact';
import { hasFirst, taken } from './api/first';
import { startClock, sync } from './api/clock';
import { person, restore } from './api/session';
import { forTab } from './api/storage';
import { startWake } from './api/wake';
import { App, preloadPage } from './app';
import { loadTexts } from './i18n/text';
import { followAnchor } from './ui/anchor';
import { waitingFor } from '@seckill/client/places';
import './style.css';

startClock();
startWake();
void restore().then(() => {
  // A place in a waiting room expires unless it is followed.
  const waits = person.peek() && waitingFor(forTab).length > 0;
  if (waits) void import('./purchase/attempt').then((module) => module.resumePlaces());
});
void sync();
await Promise.allSettled([loadTexts(), preloadPage(location.pathname)]); // what failed is loaded again by the page that needs it

/** Longest wait for the page to take its first data, in ms: a slow device needs it to run the effects of the first render. */
const UNTAKEN_MS = 1_000;
/** The same with a session, in ms: the page of a sale then asks again, as the user. */
const UNTAKEN_SIGNED_IN_MS = 100;

/** Resolves after the render of the data that the page came with. */
const shown = async (): Promise<void> => {
  const patience = person.peek() ? UNTAKEN_SIGNED_IN_MS : UNTAKEN_MS;
  await Promise.race([taken, new Promise((done) => setTimeout(done, patience))]);
  await new Promise((done) => setTimeout(done)); // the data is rendered in microtasks
};

const root = document.getElementById('app')!;
root.hidden = hasFirst; // the first paint shows the data, not that it loads
render(<App />, root);
if (hasFirst) await shown();
root.hidden = false;
followAnchor();
