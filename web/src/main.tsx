import { render } from 'preact';
import { hasInlined } from './api/first';
import { startClock, sync } from './api/clock';
import { currentUser, restore } from './api/session';
import { tabStore } from './api/storage';
import { startWake } from './api/wake';
import { App, preloadPage } from './app';
import { loadTexts } from './i18n/text';
import { followAnchor } from './ui/anchor';
import { salesWithTicket } from '@seckill/client/tickets';
import './style.css';

startClock();
startWake();
void restore().then(() => {
  // A place in a waiting room expires unless it is followed.
  const waits = currentUser.peek() && salesWithTicket(tabStore).length > 0;
  if (waits) void import('./purchase/attempt').then((module) => module.resumeWaitingRooms());
});
void sync();
await Promise.allSettled([loadTexts(), preloadPage(location.pathname)]); // a page that needs what failed loads it again

/** Resolves after two animation frames, when effects and the renders they cause are done; after 100 ms in a background tab, which has no frames. */
const settled = (): Promise<unknown> =>
  Promise.race([
    new Promise((done) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(done)))),
    new Promise((done) => setTimeout(done, 100)),
  ]);

const root = document.getElementById('app')!;
root.hidden = hasInlined; // avoids a flash of the loading state before the inlined data
render(<App />, root);
if (hasInlined) await settled();
root.hidden = false;
followAnchor();
