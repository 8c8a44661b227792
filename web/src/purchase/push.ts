/** Notices to this browser while no page of the shop is open: Web Push. */
import type { Failure } from '@seckill/client/types';
import { request } from '../api/client';
import { subscriptionHere } from '../api/push';
import { SubscribePush } from '../documents/push';

/** The push support of this browser, and the endpoint of its subscription. */
export type PushState = { state: 'unsupported' } | { state: 'uninstalled' } | { state: 'denied' } | { state: 'ready'; endpoint: string | null };

/** The service worker; it is at the root, so that its scope is the shop. */
const WORKER = '/push.js';

const supported = (): boolean =>
  'serviceWorker' in navigator && 'PushManager' in globalThis && 'Notification' in globalThis;

/**
 * Whether this is a tab on iOS or iPadOS, which have Web Push only in web apps on the home screen. An iPad names itself a
 * Mac, but no Mac has a touch screen.
 */
const isIosTab = (): boolean =>
  (/iPhone|iPad|iPod/.test(navigator.userAgent) || (/Macintosh/.test(navigator.userAgent) && navigator.maxTouchPoints > 1)) &&
  !matchMedia('(display-mode: standalone)').matches;

/** The state of this browser. */
export async function pushState(): Promise<PushState> {
  if (!supported()) return { state: isIosTab() ? 'uninstalled' : 'unsupported' };
  if (Notification.permission === 'denied') return { state: 'denied' };
  return { state: 'ready', endpoint: (await subscriptionHere())?.endpoint ?? null };
}

const browsers: readonly [RegExp, string][] = [
  [/Edg/, 'Edge'],
  [/Firefox|FxiOS/, 'Firefox'],
  [/Chrome|CriOS/, 'Chrome'],
  [/Safari/, 'Safari'],
];
const systems: readonly [RegExp, string][] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS/, 'macOS'],
  [/Linux/, 'Linux'],
];

/** A name for this browser: "Firefox, Windows". */
export function browserName(agent: string): string {
  const first = (list: readonly [RegExp, string][]) => list.find(([pattern]) => pattern.test(agent))?.[1];
  return [first(browsers), first(systems)].filter(Boolean).join(', ');
}

const base64url = (key: ArrayBuffer | null | undefined): string =>
  btoa(String.fromCharCode(...new Uint8Array(key ?? new ArrayBuffer(0)))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');

/** The outcome of subscribe. */
export type Subscribed = { state: 'on' } | { state: 'denied' } | { state: 'unreachable' } | { state: 'refused'; failure: Failure };

/** Asks for permission and sends the push subscription of this browser to the server. Call it in a click handler: browsers ignore the prompt otherwise. */
export async function subscribe(key: string): Promise<Subscribed> {
  if ((await Notification.requestPermission()) !== 'granted') return { state: 'denied' };
  let subscription: PushSubscription;
  try {
    await navigator.serviceWorker.register(WORKER);
    const { pushManager } = await navigator.serviceWorker.ready;
    const before = await pushManager.getSubscription();
    if (before && base64url(before.options.applicationServerKey) !== key) await before.unsubscribe(); // a browser has one key
    subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  } catch {
    return { state: 'unreachable' };
  }
  const { endpoint = '', keys } = subscription.toJSON();
  const input = { endpoint, p256dh: keys?.['p256dh'] ?? '', auth: keys?.['auth'] ?? '', label: browserName(navigator.userAgent) };
  const failure = (await request(SubscribePush, { input })).subscribePush?.userErrors[0];
  return failure ? { state: 'refused', failure } : { state: 'on' };
}
