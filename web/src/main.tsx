import { render } from 'preact';
import { hasFirst } from './api/first';
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

/** Resolves after the effects of a render and the renders that they cause; in a tab without frames, after a moment. */
const settled = (): Promise<unknown> =>
  Promise.race([
    new Promise((done) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(done)))),
    new Promise((done) => setTimeout(done, 100)),
  ]);

const root = document.getElementById('app')!;
root.hidden = hasFirst; // the first paint shows the data, not that it loads
render(<App />, root);
if (hasFirst) await settled();
root.hidden = false;
followAnchor();
