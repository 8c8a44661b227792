import { render } from 'preact';
import { startClock, sync } from './api/clock';
import { restore } from './api/session';
import { startWake } from './api/wake';
import { App, preloadPage } from './app';
import { loadTexts } from './i18n/text';
import './style.css';

startClock();
startWake();
void restore();
void sync();
await Promise.all([loadTexts(), preloadPage(location.pathname)]);
render(<App />, document.getElementById('app')!);
