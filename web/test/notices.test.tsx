import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startSession } from '../src/api/session';
import { setLanguage } from '../src/i18n/text';
import { Notices } from '../src/pages/notices';
import { Remind } from '../src/purchase/remind';
import { server } from './shop';

const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
let user = 0;

beforeEach(async () => {
  await setLanguage('en');
  const tokens = { accessToken: 'a', accessTokenExpiresAt: inMs(3_600_000) };
  startSession(tokens, { id: `usr_notices_${++user}`, displayName: 'A', account: 'a', role: 'CUSTOMER' });
});
afterEach(() => {
  render(null, document.body);
  vi.unstubAllGlobals();
});

const settings = (channels: string[], offered = ['MAIL', 'HOOK'], reaching = offered) => ({
  viewer: {
    noticeSettings: {
      offered,
      reaching,
      devices: [] as { id: string; label: string; createdAt: string; endpoint: string }[],
      choices: [
        { kind: 'ORDER_PLACED', channels, offered },
        { kind: 'REFUND', channels: ['MAIL'], offered },
        { kind: 'ADMITTED', channels: [], offered: offered.filter((channel) => channel === 'PUSH') },
      ],
    },
  },
  serverInfo: { pushKey: null },
});
const text = (): string => document.body.textContent ?? '';
const boxes = (): HTMLInputElement[] => [...document.querySelectorAll('input')];

test('a changed choice is stored with the other channel of its kind', async () => {
  const asked = server({
    NoticeSettings: [settings(['MAIL']), settings(['MAIL', 'HOOK'])],
    UpdateNoticeSettings: [{ updateNoticeSettings: { userErrors: [] } }],
  });
  await act(() => render(<Notices />, document.body));
  await vi.waitFor(() => expect(boxes().map(({ checked }) => checked)).toEqual([true, false, true, false]));
  expect(text()).not.toContain('confirmed');
  boxes()[1]!.click();
  await vi.waitFor(() => expect(asked.filter(({ name }) => name === 'NoticeSettings')).toHaveLength(2));
  expect(asked.find(({ name }) => name === 'UpdateNoticeSettings')?.variables.input).toEqual({
    choices: [{ kind: 'ORDER_PLACED', channels: ['MAIL', 'HOOK'] }],
  });
  await vi.waitFor(() => expect(boxes().map(({ checked }) => checked)).toEqual([true, true, true, false]));
});

test('the page says when e-mails do not arrive, and shows nothing where there is no channel', async () => {
  server({ NoticeSettings: [settings(['MAIL'], ['MAIL'], [])] });
  await act(() => render(<Notices />, document.body));
  await vi.waitFor(() => expect(text()).toContain('once your e-mail address is confirmed'));
  render(null, document.body);
  startSession({ accessToken: 'b', accessTokenExpiresAt: inMs(3_600_000) }, { id: `usr_notices_${++user}`, displayName: 'B', account: 'b', role: 'CUSTOMER' });
  server({ NoticeSettings: [settings([], [])] });
  await act(() => render(<Notices />, document.body));
  await vi.waitFor(() => expect(text()).toBe(''));
});

test('a turn in the queue is a notice for browsers only', async () => {
  const device = { id: 'dev_1', label: 'Firefox, Linux', createdAt: inMs(0), endpoint: 'https://push.example/1' };
  const some = settings(['MAIL'], ['MAIL', 'PUSH']);
  some.viewer.noticeSettings.devices.push(device);
  const asked = server({ NoticeSettings: [some, some], UpdateNoticeSettings: [{ updateNoticeSettings: { userErrors: [] } }] });
  await act(() => render(<Notices />, document.body));
  const kind = (name: string) => [...document.querySelectorAll('fieldset')].find((set) => set.querySelector('legend')?.textContent === name)!;
  await vi.waitFor(() => expect(kind('Refund')?.querySelectorAll('input')).toHaveLength(2));
  const own = kind('Your turn in the queue').querySelectorAll('input');
  expect(own).toHaveLength(1);
  own[0]!.click();
  await vi.waitFor(() => expect(asked.filter(({ name }) => name === 'NoticeSettings')).toHaveLength(2));
  expect(asked.find(({ name }) => name === 'UpdateNoticeSettings')?.variables.input).toEqual({ choices: [{ kind: 'ADMITTED', channels: ['PUSH'] }] });
});

test('without a browser that gets notices, a turn in the queue is no choice', async () => {
  server({ NoticeSettings: [settings(['MAIL'], ['MAIL', 'PUSH'])] });
  await act(() => render(<Notices />, document.body));
  await vi.waitFor(() => expect(boxes()).toHaveLength(2));
  expect(text()).not.toContain('Your turn');
});

const opening = () => ({ id: `sal_notices_${user}`, title: 'Morning bargains', startsAt: inMs(3_600_000) });
const reminder = (sale: { startsAt: string }, set: boolean, channels: string[]) => ({
  sale: { viewer: { reminder: { set, channels, sentAt: new Date(Date.parse(sale.startsAt) - 600_000).toISOString() } } },
  viewer: { contactVerified: channels.length > 0, noticeSettings: { reaching: channels } },
  serverInfo: { mail: true, pushKey: null },
});

test('a reminder of the account names its channel and its time, and is taken back', async () => {
  const sale = opening();
  const done = { userErrors: [] };
  const asked = server({
    SaleReminder: [reminder(sale, false, ['MAIL']), reminder(sale, true, ['MAIL']), reminder(sale, false, ['MAIL'])],
    RemindMe: [{ remindMe: done }],
    ForgetReminder: [{ forgetReminder: done }],
  });
  await act(() => render(<Remind sale={sale} />, document.body));
  await vi.waitFor(() => expect(text()).toBe('Remind me 10 minutes before'));
  document.querySelector('button')!.click();
  await vi.waitFor(() => expect(text()).toContain('We will e-mail you on '));
  await vi.waitFor(() => expect(document.querySelector('button')!.disabled).toBe(false));
  document.querySelector('button')!.click();
  await vi.waitFor(() => expect(text()).toBe('Remind me 10 minutes before'));
  expect(asked.filter(({ name }) => name !== 'SaleReminder').map(({ name, variables }) => [name, variables.input])).toEqual([
    ['RemindMe', { saleId: sale.id }],
    ['ForgetReminder', { saleId: sale.id }],
  ]);
});

test('without a channel that reaches the user, the tab reminds, and the page says what is missing', async () => {
  const sale = opening();
  server({ SaleReminder: [reminder(sale, false, [])] });
  await act(() => render(<Remind sale={sale} />, document.body));
  await vi.waitFor(() => expect(text()).toBe('Remind me one minute beforeConfirm your e-mail address to be reminded by e-mail'));
});
