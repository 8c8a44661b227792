import { h, render } from 'preact';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startSession } from '../src/api/session';
import { tabStore } from '../src/api/storage';
import type { Challenge } from '@seckill/client/types';
import type { Purchase } from '@seckill/client/purchase';
import { newPurchase, purchaseOf, resumeWaitingRooms } from '../src/purchase/attempt';
import { setLanguage } from '../src/i18n/text';
import { drawEntry } from '@seckill/client/tickets';
import { pendingAttempt } from '@seckill/client/pending';
import { Toasts } from '../src/ui/toast';
import type { Waiting } from '@seckill/client/waiting';
import { stubWebSocket, server, T0, type Reply, type StubStream } from './shop';

const now = new Date(T0).toISOString();
const soon = new Date(T0 + 60_000).toISOString();
const answer = { challengeId: 'cap_1', answer: '42', expires: T0 + 300_000, early: false };
const path: Reply = { issueSeckillPath: { path: { token: 'p1', expiresAt: soon }, userErrors: [] } };
const task = { id: 'tsk_1', status: 'SUBMITTED', revision: 1, quantity: 1, item: { id: 'itm_1' }, order: null, failure: null };
const placed: Reply = { placeOrder: { orderTask: task, replayed: false, userErrors: [] } };
const challenge = { id: 'cap_2', kind: 'MATH', image: 'data:image/png;base64,', prompt: '?', expiresAt: soon } as Challenge;

function refuse(field: string, error: Record<string, unknown>): Reply {
  return { [field]: { path: null, orderTask: null, userErrors: [{ __typename: 'BasicError', message: '', path: null, ...error }] } };
}

/** The subscriptions of the page; each purchase subscribes to its order task. */
const streams: StubStream[] = [];
const made: Purchase[] = [];
let changed: ReturnType<typeof vi.fn<() => void>>;
function purchase(): Purchase {
  changed = vi.fn<() => void>();
  const it = newPurchase('sal_1', changed);
  made.push(it);
  return it;
}

/** Lets waits pass and promises settle. */
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

function signIn(id: string): void {
  const tokens = { accessToken: 'a', accessTokenExpiresAt: new Date(T0 + 3_600_000).toISOString() };
  startSession(tokens, { id, displayName: 'A', account: 'a', role: 'CUSTOMER' });
}

beforeEach(() => {
  vi.useFakeTimers({ now: T0 });
  sessionStorage.clear();
  streams.length = 0;
  stubWebSocket(streams);
  signIn('usr_1');
});
afterEach(() => {
  for (const it of made.splice(0)) it.close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('an attempt', () => {
  test('asks for the check, then for the path, then places the order', async () => {
    const asked = server({ IssuePath: [path], PlaceOrder: [placed] });
    const it = purchase();
    it.buy('itm_1', 1);
    expect(it.attempt.value.step).toBe('check');
    it.answer(answer);
    expect(it.attempt.value.step).toBe('sending');
    await pass(0);
    expect(asked.map(({ name }) => name)).toEqual(['IssuePath', 'PlaceOrder']);
    expect(asked[1]!.variables.input).toMatchObject({ itemId: 'itm_1', quantity: 1, pathToken: 'p1' });
    expect(it.attempt.value).toEqual({ step: 'queued', taskId: 'tsk_1' });
    expect(pendingAttempt(tabStore, 'sal_1')).toBeNull();
  });

  test('is sent at once with a check done ahead', async () => {
    const early = refuse('enterQueue', { __typename: 'SaleNotOpenError', code: 'SALE_NOT_STARTED', phase: 'UPCOMING', startsAt: soon, serverTime: now });
    server({ EnterQueue: [early], IssuePath: [path], PlaceOrder: [placed] });
    const it = purchase();
    it.prepare('itm_1');
    it.answer(answer);
    await pass(0);
    expect(it.ready.value).toEqual(answer); // there is no waiting room yet, and nothing was used up
    it.buy('itm_1', 1);
    expect(it.attempt.value.step).toBe('sending');
    await pass(0);
    expect(it.attempt.value.step).toBe('queued');
  });

  test('asks for a new check when the browser worked out the last one before the opening', async () => {
    const early = refuse('enterQueue', { __typename: 'SaleNotOpenError', code: 'SALE_NOT_STARTED', phase: 'UPCOMING', startsAt: soon, serverTime: now });
    const asked = server({ EnterQueue: [early], IssuePath: [path], PlaceOrder: [placed] });
    const it = purchase();
    it.prepare('itm_1');
    it.answer({ ...answer, early: true });
    await pass(0);
    it.buy('itm_1', 1);
    expect(it.attempt.value.step).toBe('check');
    expect(asked.map(({ name }) => name)).toEqual(['EnterQueue']);
    it.answer({ ...answer, challengeId: 'cap_2' });
    await pass(0);
    expect(asked[1]!.variables.input).toMatchObject({ captcha: { challengeId: 'cap_2' } });
    expect(it.attempt.value.step).toBe('queued');
  });

  test('is not sent by a check that was put away', async () => {
    const asked = server({});
    const it = purchase();
    it.prepare('itm_1');
    it.dismiss();
    it.answer(answer);
    await pass(0);
    expect(asked).toEqual([]);
    expect(it.ready.value).toEqual(answer);
  });

  test('cannot be sent twice', async () => {
    const asked = server({ IssuePath: [path], PlaceOrder: [placed] });
    const it = purchase();
    it.buy('itm_1', 1);
    it.answer(answer);
    it.buy('itm_1', 1);
    it.buy('itm_1', 1);
    await pass(0);
    it.buy('itm_1', 1);
    await pass(0);
    expect(asked).toHaveLength(2);
  });

  test('keeps its key through lost answers', async () => {
    const asked = server({ IssuePath: ['cut', path], PlaceOrder: ['cut', 'cut', placed] });
    const it = purchase();
    it.buy('itm_1', 1);
    it.answer(answer);
    await pass(20_000);
    expect(it.attempt.value.step).toBe('queued');
    const keys = asked.filter(({ name }) => name === 'PlaceOrder').map(({ variables }) => variables.input['idempotencyKey']);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
  });

  test('is resumed with the same key after a reload', async () => {
    const before = server({ IssuePath: [path], PlaceOrder: ['never'] });
    const first = purchase();
    first.buy('itm_1', 1);
    first.answer(answer);
    await pass(0);
    const after = server({ PlaceOrder: [placed] });
    const second = purchase();
    second.resume();
    await pass(0);
    expect(after[0]!.variables.input).toEqual(before[1]!.variables.input);
    expect(second.attempt.value.step).toBe('queued');
  });

  test('shows that it does not know when no answer ever comes, and goes on with the same key', async () => {
    const asked = server({ IssuePath: [path], PlaceOrder: [...Array<Reply>(40).fill('cut')] });
    const it = purchase();
    it.buy('itm_1', 1);
    it.answer(answer);
    await pass(34_000);
    expect(it.attempt.value.step).toBe('broken');
    expect(pendingAttempt(tabStore, 'sal_1')!.key).toBe(asked[1]!.variables.input['idempotencyKey']);
  });
});

describe('a refusal', () => {
  async function refused(field: 'issueSeckillPath' | 'placeOrder', error: Record<string, unknown>) {
    server(field === 'placeOrder' ? { IssuePath: [path], PlaceOrder: [refuse(field, error)] } : { IssuePath: [refuse(field, error)] });
    const it = purchase();
    it.buy('itm_1', 1);
    it.answer(answer);
    await pass(0);
    return it;
  }

  test('of the answer brings the next challenge', async () => {
    const it = await refused('issueSeckillPath', { __typename: 'CaptchaError', code: 'CAPTCHA_INVALID', challenge });
    expect(it.attempt.value).toMatchObject({ step: 'check', challenge: { id: 'cap_2' } });
    server({ IssuePath: [path], PlaceOrder: [placed] });
    it.answer(answer);
    await pass(0);
    expect(it.attempt.value.step).toBe('queued');
  });

  test('of the path asks for the check again and keeps the key', async () => {
    const it = await refused('placeOrder', { code: 'PATH_INVALID' });
    expect(it.attempt.value).toMatchObject({ step: 'check', failure: { code: 'PATH_INVALID' } });
    expect(pendingAttempt(tabStore, 'sal_1')).toMatchObject({ path: null });
  });

  test('for good ends the attempt', async () => {
    const it = await refused('placeOrder', { __typename: 'SoldOutError', code: 'SOLD_OUT' });
    expect(it.attempt.value).toMatchObject({ step: 'refused', failure: { code: 'SOLD_OUT' } });
    expect(pendingAttempt(tabStore, 'sal_1')).toBeNull();
    expect(changed).toHaveBeenCalledOnce();
  });

  test('for a moment is waited out', async () => {
    const limited = refuse('issueSeckillPath', { __typename: 'RateLimitedError', code: 'RATE_LIMITED', retryAfterMs: 2_000 });
    const asked = server({ IssuePath: [limited, path], PlaceOrder: [placed] });
    const it = purchase();
    it.buy('itm_1', 1);
    it.answer(answer);
    await pass(1_900);
    expect(asked).toHaveLength(1);
    expect(it.attempt.value).toEqual({ step: 'sending', slow: true });
    await pass(600);
    expect(it.attempt.value.step).toBe('queued');
  });

  test('a wait of many minutes is shown', async () => {
    server({ IssuePath: [refuse('issueSeckillPath', { __typename: 'RateLimitedError', code: 'RATE_LIMITED', retryAfterMs: 1_800_000 })] });
    const it = purchase();
    it.buy('itm_1', 1);
    it.answer(answer);
    await pass(0);
    expect(it.attempt.value).toMatchObject({ step: 'refused', failure: { code: 'RATE_LIMITED', retryAfterMs: 1_800_000 } });
    expect(changed).toHaveBeenCalled();
  });

  test('because the clock was a little ahead is waited out', async () => {
    const early = refuse('issueSeckillPath', {
      __typename: 'SaleNotOpenError',
      code: 'SALE_NOT_STARTED',
      phase: 'UPCOMING',
      startsAt: new Date(T0 + 300).toISOString(),
      serverTime: new Date(T0).toISOString(),
    });
    server({ IssuePath: [early, path], PlaceOrder: [placed] });
    const it = purchase();
    it.buy('itm_1', 1);
    it.answer(answer);
    await pass(299);
    expect(it.attempt.value.step).toBe('sending');
    await pass(400);
    expect(it.attempt.value.step).toBe('queued');
  });
});

describe('the waiting room', () => {
  const turn = { token: 'p2', expiresAt: soon };
  const ticket = (id: string, status: string, more: object = {}): Record<string, unknown> => ({
    queuePosition: { ticket: { __typename: 'QueueTicket', id, status, path: null, position: null, ...more } },
  });
  const entered: Reply = { enterQueue: { ticket: { id: 'tkt_1', item: { id: 'itm_1', draw: { commitment: 'c0ffee' } } }, userErrors: [] } };
  /** The subscription that keeps a waiting-room ticket alive. */
  const kept = async (): Promise<StubStream> => {
    await vi.dynamicImportSettled();
    await pass(0);
    expect(streams.at(-1)).toMatchObject({ name: 'QueuePlace', open: true });
    return streams.at(-1)!;
  };
  const room = (it: Purchase): Waiting => {
    const attempt = it.attempt.value;
    if (attempt.step !== 'room') throw new Error(`in step ${attempt.step}`);
    return attempt.waiting;
  };

  test('is entered for the draw before the opening, and the turn waits for the press', async () => {
    const asked = server({ EnterQueue: [entered], PlaceOrder: [placed] });
    const it = purchase();
    it.prepare('itm_1');
    it.answer(answer);
    const stream = await kept();
    expect(stream.variables).toEqual({ id: 'tkt_1' });
    for (const ahead of [40, 12, 30]) stream.say(ticket('tkt_1', 'WAITING', { position: { ahead } }));
    expect([room(it).first.value, room(it).least.value]).toEqual([40, 12]); // a place never moves back
    stream.say(ticket('tkt_1', 'ADMITTED', { path: turn }));
    expect(it.attempt.value.step).toBe('admitted');
    expect(stream.open).toBe(false);
    it.buy('itm_1', 1);
    await pass(0);
    expect(asked[1]!.variables.input).toMatchObject({ pathToken: 'p2', itemId: 'itm_1' });
    expect(it.attempt.value.step).toBe('queued');
    const { drawNonce } = asked[0]!.variables.input; // what the number is checked with stays when the place is gone
    expect(drawEntry(tabStore, 'sal_1')).toEqual({ ticketId: 'tkt_1', itemId: 'itm_1', nonce: drawNonce, commitment: 'c0ffee' });
  });

  test('is kept without any page that shows it, and goes on with the press when the turn comes', async () => {
    server({ IssuePath: [{ issueSeckillPath: { path: null, ticket: { id: 'tkt_2' }, userErrors: [] } }], PlaceOrder: [placed] });
    const it = purchase();
    it.buy('itm_1', 1);
    it.answer(answer);
    await pass(0);
    const stream = await kept();
    expect(room(it).id).toBe('tkt_2');
    it.buy('itm_1', 1); // is taken already
    await pass(60_000);
    expect(stream.open).toBe(true);
    stream.say(ticket('tkt_2', 'ADMITTED', { path: turn }));
    await pass(0);
    expect(it.attempt.value.step).toBe('queued');
  });

  test('is resumed after a reload, and removed when it has ended', async () => {
    server({ EnterQueue: [entered] });
    const first = purchase();
    first.prepare('itm_1');
    first.answer(answer);
    await kept();
    first.close();
    const second = purchase();
    second.resume();
    expect(room(second).id).toBe('tkt_1');
    (await kept()).say(ticket('tkt_1', 'CLOSED'));
    expect(second.attempt.value.step).toBe('idle');
    expect(changed).toHaveBeenCalledOnce();
    const third = purchase();
    third.resume();
    expect(third.attempt.value.step).toBe('idle');
  });

  test('sends what was pressed, under its key, after a reload', async () => {
    const asked = server({ IssuePath: [{ issueSeckillPath: { path: null, ticket: { id: 'tkt_3' }, userErrors: [] } }], PlaceOrder: [placed] });
    const first = purchase();
    first.buy('itm_1', 3);
    first.answer(answer);
    await pass(0);
    await kept();
    const { key } = pendingAttempt(tabStore, 'sal_1')!;
    first.close();
    const second = purchase();
    second.resume();
    (await kept()).say(ticket('tkt_3', 'ADMITTED', { path: turn }));
    await pass(0);
    expect(asked.at(-1)).toMatchObject({ name: 'PlaceOrder', variables: { input: { quantity: 3, idempotencyKey: key } } });
  });

  test('restores an unused turn after a reload, on any page', async () => {
    server({ EnterQueue: [entered] });
    const first = purchase();
    first.prepare('itm_1');
    first.answer(answer);
    (await kept()).say(ticket('tkt_1', 'ADMITTED', { path: turn }));
    expect(first.attempt.value.step).toBe('admitted');
    resumeWaitingRooms();
    (await kept()).say(ticket('tkt_1', 'ADMITTED', { path: turn }));
    expect(purchaseOf('sal_1', () => {}).attempt.value).toEqual({ step: 'admitted', itemId: 'itm_1', path: turn });
    purchaseOf('sal_1', () => {}).left();
  });

  test('keeps the turn of one item while the buyer opens and closes the captcha of another', async () => {
    server({ EnterQueue: [entered] });
    const it = purchase();
    it.prepare('itm_2');
    it.answer(answer);
    (await kept()).say(ticket('tkt_1', 'ADMITTED', { path: turn }));
    it.buy('itm_1', 1);
    expect(it.attempt.value.step).toBe('check');
    it.dismiss();
    expect(it.attempt.value).toEqual({ step: 'admitted', itemId: 'itm_2', path: turn });
  });

  test.each([
    ['LEFT', 'You lost your place in the queue'],
    ['LEFT', 'You have an order for', 'ALREADY_ORDERED'],
    ['LEFT', 'You have as many units as this sale allows', 'PURCHASE_LIMIT_REACHED'],
    ['ADMITTED', 'Your turn expired', 'PATH_INVALID'],
    ['CLOSED', 'Everyone still waiting missed it'],
  ])('shows why a ticket is %s', async (status, words, endReason?: string) => {
    await setLanguage('en');
    server({ EnterQueue: [entered] });
    const it = purchase();
    it.prepare('itm_1');
    it.answer(answer);
    (await kept()).say(ticket('tkt_1', status, { endReason }));
    if (endReason !== 'PATH_INVALID') expect(it.attempt.value.step).toBe('idle');
    else expect(it.attempt.value).toMatchObject({ step: 'refused', failure: { code: 'PATH_INVALID' }, itemId: 'itm_1' }); // stays on the page
    render(h(Toasts, {}), document.body);
    expect(document.body.textContent).toContain(words);
  });

  test('takes the turn where notifications are allowed and cannot be made', async () => {
    class Refusing {
      static readonly permission = 'granted';
      constructor() {
        throw new TypeError('Illegal constructor');
      }
    }
    vi.stubGlobal('Notification', Refusing);
    server({ IssuePath: [{ issueSeckillPath: { path: null, ticket: { id: 'tkt_4' }, userErrors: [] } }], PlaceOrder: [placed] });
    const it = purchase();
    it.buy('itm_1', 1);
    it.answer(answer);
    await pass(0);
    (await kept()).say(ticket('tkt_4', 'ADMITTED', { path: turn }));
    await pass(0);
    expect(it.attempt.value.step).toBe('queued');
  });

  test('is left when another user signs in', async () => {
    server({ EnterQueue: [entered] });
    const it = purchaseOf('sal_1', () => {});
    it.prepare('itm_1');
    it.answer(answer);
    await kept();
    const before = streams.length;
    signIn('usr_2'); // all streams start again, as another user
    await pass(10_000);
    expect(streams).toHaveLength(before);
  });
});
