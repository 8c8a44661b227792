import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startSession } from '../src/api/session';
import { setLanguage } from '../src/i18n/text';
import { Notices } from '../src/pages/notices';
import { browserName } from '../src/purchase/push';
import { Remind } from '../src/purchase/remind';
import { server } from './shop';

const KEY = 'BEl62iUYgUivxIkv69yViEuiBIa-Ib9-SkvMeAtA3LFgDzkrxZJjSgSnfckjBJuBkr3qBUYIHBQFLXYp5Nksh8U';
const ENDPOINT = 'https://push.example/1';
const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
let user = 0;

/** What the browser does: its permission, and the subscriptions that it made. */
interface Browser {
  permission: NotificationPermission;
  made: { applicationServerKey: unknown }[];
  subscribed: boolean;
}

/** Stubs the Web Push API of the browser. reachable = whether its push service responds. */
function browser(permission: NotificationPermission, { answer = 'granted', reachable = true } = {}): Browser {
  const state: Browser = { permission, made: [], subscribed: false };
  const subscription = {
    endpoint: ENDPOINT,
    options: { applicationServerKey: null },
    toJSON: () => ({ endpoint: ENDPOINT, keys: { p256dh: 'P', auth: 'A' } }),
    unsubscribe: async () => !(state.subscribed = false),
  };
  const pushManager = {
    getSubscription: async () => (state.subscribed ? subscription : null),
    subscribe: async (options: { applicationServerKey: unknown }) => {
      if (!reachable) throw new DOMException('push service not available', 'AbortError');
      state.made.push(options);
      state.subscribed = true;
      return subscription;
    },
  };
  const registration = { pushManager };
  vi.stubGlobal('PushManager', class {});
  vi.stubGlobal('Notification', {
    get permission() {
      return state.permission;
    },
    requestPermission: async () => (state.permission = answer as NotificationPermission),
  });
  Object.defineProperty(navigator, 'serviceWorker', {
    configurable: true,
    value: { register: async () => registration, getRegistration: async () => registration, ready: Promise.resolve(registration) },
  });
  return state;
}

beforeEach(async () => {
  await setLanguage('en');
  const tokens = { accessToken: 'a', accessTokenExpiresAt: inMs(3_600_000) };
  startSession(tokens, { id: `usr_push_${++user}`, displayName: 'A', account: 'a', role: 'CUSTOMER' });
});
afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
  Reflect.deleteProperty(navigator, 'serviceWorker');
});

const here = { id: 'dev_1', label: 'Chrome, Linux', createdAt: inMs(0), endpoint: ENDPOINT };
const settings = (...devices: (typeof here)[]) => ({
  viewer: {
    noticeSettings: { offered: ['PUSH'], reaching: devices.length ? ['PUSH'] : [], devices, choices: [{ kind: 'REFUND', channels: devices.length ? ['PUSH'] : [], offered: ['PUSH'] }] },
  },
  serverInfo: { pushKey: KEY },
});
const text = (): string => document.body.textContent ?? '';
const button = (name: string): HTMLButtonElement | undefined =>
  [...document.querySelectorAll('button')].find((each) => (each.getAttribute('aria-label') ?? each.textContent) === name);
const show = () => act(() => render(<Notices />, document.body));

test('a device is added by a click and removed again', async () => {
  const state = browser('default');
  const other = { ...here, id: 'dev_2', label: '', endpoint: 'https://push.example/2' };
  const asked = server({
    NoticeSettings: [settings(), settings(here, other), settings(other)],
    SubscribePush: [{ subscribePush: { userErrors: [] } }],
    UnsubscribePush: [{ unsubscribePush: { userErrors: [] } }],
  });
  await show();
  await vi.waitFor(() => expect(button('Notify me on this device')).toBeDefined());
  expect(document.querySelectorAll('input')).toHaveLength(0);
  button('Notify me on this device')!.click();
  await vi.waitFor(() => expect(text()).toContain('Notices reach this device'));
  await vi.waitFor(() => expect(text()).toContain('Chrome, Linux (this device), since '));
  expect(state.made).toEqual([{ userVisibleOnly: true, applicationServerKey: KEY }]);
  const { input } = asked.find(({ name }) => name === 'SubscribePush')!.variables;
  expect(input).toMatchObject({ endpoint: ENDPOINT, p256dh: 'P', auth: 'A' });
  expect(document.querySelectorAll('input')).toHaveLength(1);
  await vi.waitFor(() => expect(button('Remove Chrome, Linux')!.disabled).toBe(false));
  button('Remove Chrome, Linux')!.click();
  await vi.waitFor(() => expect(button('Notify me on this device')).toBeDefined());
  await vi.waitFor(() => expect(text()).not.toContain('Chrome, Linux'));
  expect(button('Remove A browser')).toBeDefined();
  expect(state.subscribed).toBe(false);
  expect(asked.find(({ name }) => name === 'UnsubscribePush')!.variables.input).toEqual({ deviceId: 'dev_1' });
});

test('the page says why this device gets no notices', async () => {
  server({ NoticeSettings: [settings()] });
  await show();
  await vi.waitFor(() => expect(text()).toContain('This browser shows notices only while'));
  expect(button('Notify me on this device')).toBeUndefined();
  render(null, document.body);

  browser('denied');
  server({ NoticeSettings: [settings()] });
  await show();
  await vi.waitFor(() => expect(text()).toContain('Notifications of this shop are blocked.'));
  render(null, document.body);

  browser('default', { answer: 'denied' });
  const asked = server({ NoticeSettings: [settings(), settings()] });
  await show();
  await vi.waitFor(() => expect(button('Notify me on this device')).toBeDefined());
  button('Notify me on this device')!.click();
  await vi.waitFor(() => expect(text()).toContain('Notifications of this shop are blocked.'));
  expect(asked.map(({ name }) => name)).not.toContain('SubscribePush');
  render(null, document.body);

  browser('granted', { reachable: false });
  server({ NoticeSettings: [settings(), settings()] });
  await show();
  await vi.waitFor(() => expect(button('Notify me on this device')).toBeDefined());
  button('Notify me on this device')!.click();
  await vi.waitFor(() => expect(document.querySelector('[role=alert]')?.textContent).toContain('does not reach its push service'));
});

test('a tab on iOS says how the shop is put on the home screen, where it gets notices', async () => {
  const agent = vi.spyOn(navigator, 'userAgent', 'get');
  const touches = vi.fn(() => 5);
  Object.defineProperty(navigator, 'maxTouchPoints', { configurable: true, get: touches });
  const shows = async (name: string, standalone: boolean): Promise<string> => {
    agent.mockReturnValue(`Mozilla/5.0 (${name}) AppleWebKit/605.1.15 Version/26.0 Safari/604.1`);
    vi.stubGlobal('matchMedia', (query: string) => ({ matches: standalone && query === '(display-mode: standalone)' }));
    server({ NoticeSettings: [settings()] });
    await show();
    await vi.waitFor(() => expect(text()).toMatch(/home screen|This browser/));
    const shown = text();
    render(null, document.body);
    return shown;
  };
  try {
    expect(await shows('iPhone; CPU iPhone OS 26_0 like Mac OS X', false)).toContain('add the shop to the home screen');
    expect(await shows('Macintosh; Intel Mac OS X 10_15_7', false)).toContain('add the shop to the home screen'); // an iPad
    expect(await shows('iPhone; CPU iPhone OS 16_0 like Mac OS X', true)).toContain('This browser shows notices only while'); // too old
    touches.mockReturnValue(0);
    expect(await shows('Macintosh; Intel Mac OS X 10_15_7', false)).toContain('This browser shows notices only while');
    await setLanguage('zh');
    touches.mockReturnValue(5);
    server({ NoticeSettings: [settings()] });
    await show();
    await vi.waitFor(() => expect(text()).toContain('添加到主屏幕'));
  } finally {
    agent.mockRestore();
    Reflect.deleteProperty(navigator, 'maxTouchPoints');
  }
});

test('a sale offers the reminder on this device where nothing else reaches the buyer', async () => {
  browser('default');
  const sale = { id: `sal_push_${user}`, title: 'Morning bargains', startsAt: inMs(3_600_000) };
  const reminder = (set: boolean, channels: string[]) => ({
    sale: { viewer: { reminder: { set, channels, sentAt: inMs(3_000_000) } } },
    viewer: { contactVerified: null, noticeSettings: { reaching: channels } },
    serverInfo: { mail: false, pushKey: KEY },
  });
  const asked = server({
    SaleReminder: [reminder(false, []), reminder(true, ['PUSH'])],
    SubscribePush: [{ subscribePush: { userErrors: [] } }],
    RemindMe: [{ remindMe: { userErrors: [] } }],
  });
  await act(() => render(<Remind sale={sale} />, document.body));
  await vi.waitFor(() => expect(text()).toBe('Remind me one minute beforeNotify me on this device'));
  button('Notify me on this device')!.click();
  await vi.waitFor(() => expect(text()).toContain('We will notify your device on '));
  expect(asked.map(({ name }) => name)).toEqual(['SaleReminder', 'SubscribePush', 'RemindMe', 'SaleReminder']);
});

test('devices are named by browser and system', () => {
  const of = (agent: string) => browserName(`Mozilla/5.0 ${agent}`);
  expect(of('(Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0')).toBe('Edge, Windows');
  expect(of('(X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0')).toBe('Firefox, Linux');
  expect(of('(Linux; Android 10; K) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36')).toBe('Chrome, Android');
  expect(of('(iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Safari/604.1')).toBe('Safari, iOS');
  expect(browserName('curl')).toBe('');
});
