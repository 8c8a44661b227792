import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { warm, work as solve } from '@seckill/client/captcha/solve';
import { CreateCaptcha } from '@seckill/client/documents/server';
import type { Purchase } from '@seckill/client/purchase';
import type { Challenge } from '@seckill/client/types';
import { now } from '../api/clock';
import { request } from '../api/client';
import { byBrowser, wantedKind } from './preference';

/** Within how long the pages that waited for an opening ask, in ms, so that they do not ask in the same second. */
const SPREAD_MS = 5_000;
/** An answer is renewed this long before it expires, in ms. */
const MARGIN_MS = 10_000;

const requestOne = async (saleId: string, signal?: AbortSignal): Promise<Challenge | null | undefined> =>
  (await request(CreateCaptcha, { input: { purpose: 'SECKILL', saleId, ...wantedKind() } }, signal)).createCaptcha?.challenge;

/** The challenge of a sale whose page has no data yet. */
let early: { saleId: string; challenge: ReturnType<typeof requestOne> } | null = null;

/** Requests the captcha of an open sale together with the data of its page. */
export function askEarly(saleId: string): void {
  if (!byBrowser()) return;
  warm();
  early = { saleId, challenge: requestOne(saleId) };
  early.challenge.catch(() => {}); // the page asks again
}

/**
 * Requests the captcha of a sale while the buyer looks at it, and works it out if the browser can: the press then costs two round trips.
 * A request that is under way when the button is pressed goes on. Returns whether one is, the challenge that is not worked out yet, for
 * the captcha of that press, and a function that forgets it.
 */
export function useCaptchaAhead(purchase: Purchase, wanted: boolean, pressed: boolean): { asking: boolean; challenge: Challenge | null; forget: () => void } {
  const open = useSignal<Challenge | null>(null);
  const asking = useSignal(false);
  const waited = useRef(!wanted); // for the opening, or for the stock to return
  const active = wanted ? purchase.ready.value === null : pressed && asking.value;
  useEffect(() => {
    if (!active || !byBrowser()) return;
    const left = new AbortController();
    const ask = async (): Promise<void> => {
      asking.value = true;
      warm();
      const asked = early?.saleId === purchase.saleId ? early.challenge : requestOne(purchase.saleId, left.signal);
      early = null;
      const challenge = await asked;
      if (challenge && !challenge.early && !left.signal.aborted) open.value = challenge;
    };
    const answered = (): void => void (left.signal.aborted || (asking.value = false));
    const timer = setTimeout(() => ask().then(answered, answered), waited.current ? Math.random() * SPREAD_MS : 0); // the press asks again
    return () => {
      left.abort();
      clearTimeout(timer);
      asking.value = false;
    };
  }, [purchase, active]);

  const work = wanted && open.value?.kind === 'PROOF_OF_WORK' ? open.value : null;
  useEffect(() => {
    if (!work) return;
    const stop = solve(work.parameters ?? '{}', (report) => {
      if (!('answer' in report)) return;
      stop();
      open.value = null;
      purchase.answer({ challengeId: work.id, answer: report.answer, expires: Date.parse(work.expiresAt), early: false });
    });
    return stop;
  }, [work]);

  const expires = purchase.ready.value?.expires ?? Infinity;
  useEffect(() => {
    if (expires === Infinity) return;
    const timer = setTimeout(() => {
      if (document.visibilityState === 'visible') purchase.ready.value = null; // a hidden page asks when its button is pressed
    }, expires - MARGIN_MS - now());
    return () => clearTimeout(timer);
  }, [purchase, expires]);

  const challenge = open.value && Date.parse(open.value.expiresAt) - MARGIN_MS > now() ? open.value : null;
  return { asking: asking.value, challenge, forget: () => void (open.value = null) };
}
