/** The captcha: a proof of work by the browser, a picture to read, or the widget of an external provider. */
import { useSignal } from '@preact/signals';
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks';
import { now } from '../api/clock';
import { backoff } from '@seckill/client/backoff';
import { work } from '@seckill/client/captcha/solve';
import { toFault } from '@seckill/client/fault';
import { request } from '../api/client';
import type { CaptchaPurpose, Challenge, Failure } from '@seckill/client/types';
import { CreateCaptcha } from '@seckill/client/documents/server';
import { bounded } from '../forms/bounded';
import { faultText, explain, t } from '../i18n/text';
import { Dialog } from '../ui/dialog';
import { readOut } from '../ui/live-region';
import type { Answer } from '@seckill/client/purchase';
import { ExternalCaptcha, readParameters } from './outside';
import { Puzzle } from './picture';
import { byBrowser, preferBrowser, wantedKind } from './preference';

/** The state of the captcha. */
type State =
  | { state: 'loading' }
  | { state: 'picture'; challenge: Challenge }
  | { state: 'work'; challenge: Challenge; share: number }
  | { state: 'outside'; challenge: Challenge }
  | { state: 'worked' }
  | { state: 'failed'; why: string };

interface Props {
  purpose: CaptchaPurpose;
  saleId?: string;
  /** The challenge of a refusal. */
  challenge: Challenge | null;
  failure: Failure | null;
  onAnswer(answer: Answer): void;
  /** The user closed the dialog. */
  close(): void;
}

/** A check that takes longer than this, in ms, shows its progress and can be replaced by a picture. */
const SLOW_MS = 3_000;
/** After two refusals within this time, in ms, the user decides whether to try again. */
const REPEATED_MS = 60_000;
let refusedAt = -Infinity;

/** Loads a captcha and calls back once with the answer. It shows a dialog only where the user has to do something or to wait. */
export function Captcha({ purpose, saleId, challenge, failure, onAnswer, close }: Props) {
  const state = useSignal<State>({ state: 'loading' });
  const asks = useSignal(!byBrowser());
  const stop = useRef(() => {});
  const latest = useRef(0); // number of the newest request; older responses are dropped
  const tries = useRef(0);
  const input = useRef<HTMLInputElement>(null);
  const hint = useId();

  const fail = (why: string): void => {
    asks.value = true;
    state.value = { state: 'failed', why };
  };

  const answered = (to: Challenge, answer: string): void => {
    if (to.kind === 'PROOF_OF_WORK' || to.kind === 'EXTERNAL') {
      stop.current();
      state.value = { state: 'worked' };
      readOut(t('check.worked'));
    }
    onAnswer({ challengeId: to.id, answer, expires: Date.parse(to.expiresAt), early: to.early });
  };

  const show = (next: Challenge, quietly = false): void => {
    stop.current();
    const outside = next.kind === 'EXTERNAL' && readParameters(next.parameters);
    if (next.image || outside) {
      asks.value = true;
      state.value = { state: next.image ? 'picture' : 'outside', challenge: next };
      const left = setTimeout(() => void fetchOne(), Math.max(1_000, Date.parse(next.expiresAt) - now()));
      stop.current = () => clearTimeout(left);
      return;
    }
    if (next.kind !== 'PROOF_OF_WORK') return quietly ? fail(t('check.failed')) : void fetchOne(true);
    state.value = { state: 'work', challenge: next, share: 0 };
    stop.current = work(next.parameters ?? '{}', (report) => {
      if ('share' in report) state.value = { state: 'work', challenge: next, share: report.share };
      else if ('answer' in report) answered(next, report.answer);
      else fail(t('check.failed'));
    });
  };

  const fetchOne = async (quietly = false): Promise<void> => {
    stop.current();
    const mine = ++latest.current;
    state.value = { state: 'loading' };
    try {
      const kind = quietly ? { kind: 'PROOF_OF_WORK' as const } : wantedKind();
      const { createCaptcha: made } = await request(CreateCaptcha, {
        input: { purpose, ...(saleId && { saleId }), ...kind },
      });
      if (mine !== latest.current) return;
      tries.current = 0;
      if (made?.challenge) show(made.challenge, quietly);
      else fail(made?.userErrors[0] ? explain(made.userErrors[0]) : t('check.failed'));
    } catch (thrown) {
      if (mine !== latest.current) return;
      const fault = toFault(thrown);
      fail(faultText(fault));
      if (!fault.transient) return;
      const again = setTimeout(() => void fetchOne(quietly), Math.max(fault.retryAfterMs, backoff(++tries.current)));
      stop.current = () => clearTimeout(again);
    }
  };

  useLayoutEffect(() => { // before the next frame, so that a refused widget cannot be clicked
    const slow = setTimeout(() => (asks.value = true), SLOW_MS);
    const repeated = failure !== null && now() - refusedAt < REPEATED_MS;
    if (failure) refusedAt = now();
    if (repeated && byBrowser() && (!challenge || challenge.kind === 'PROOF_OF_WORK')) fail('');
    else if (challenge) show(challenge);
    else void fetchOne();
    return () => {
      clearTimeout(slow);
      latest.current++;
      stop.current();
    };
  }, [challenge]);

  const picture = state.value.state === 'picture' ? state.value.challenge : null;
  const outside = state.value.state === 'outside' ? state.value.challenge : null;
  useEffect(() => {
    if (picture) input.current?.focus();
  }, [picture?.id]);

  const prefer = (browser: boolean): void => {
    preferBrowser(browser);
    asks.value = !browser;
    void fetchOne();
  };

  const body = (
    <div class="grid gap-3">
      {failure && (
        <p class="font-medium text-warn" role="alert">
          {failure.code === 'PATH_INVALID' ? t('check.fresh') : explain(failure)}
        </p>
      )}
      <Body state={state.value} again={() => void fetchOne()} />
      {outside && <ExternalCaptcha key={outside.id} parameters={outside.parameters} done={(token) => answered(outside, token)} broken={fail} />}
      {picture && (
        <form
          class="grid gap-3"
          onSubmit={(event) => {
            event.preventDefault();
            const answer = input.current!.value.trim();
            if (answer) answered(picture, answer);
          }}
        >
          <Puzzle key={picture.id} dataUrl={picture.image!} broken={() => fail(t('check.failed'))} />
          <p id={hint}>{picture.prompt}</p>
          <div class="flex gap-2">
            <input
              ref={(field) => {
                input.current = field;
                bounded({ most: 64 })(field);
              }}
              class="field"
              aria-label={t('check.answer')}
              aria-describedby={hint}
              inputMode={picture.kind === 'MATH' ? 'numeric' : 'text'}
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              required
            />
            <button class="btn btn-main shrink-0">{t('check.send')}</button>
          </div>
          <p class="flex flex-wrap gap-x-5 gap-y-2 text-sm">
            <button type="button" class="link" onClick={() => void fetchOne()}>
              {t('check.another')}
            </button>
            <button type="button" class="link text-left" onClick={() => prefer(true)}>
              {t('check.byBrowser')}
            </button>
          </p>
        </form>
      )}
      {!picture && !outside && byBrowser() && state.value.state !== 'worked' && (
        <button type="button" class="link justify-self-start text-sm" onClick={() => prefer(false)}>
          {t('check.byPicture')}
        </button>
      )}
    </div>
  );
  return asks.value ? <Dialog title={t('check.title')} close={close} children={body} /> : null;
}

/** The captcha while it shows no picture. */
function Body({ state, again }: { state: State; again: () => void }) {
  switch (state.state) {
    case 'picture':
    case 'outside':
      return null;
    case 'loading':
      return (
        <p class="flex items-center gap-3 text-soft">
          <span class="spin" /> {t('check.loading')}
        </p>
      );
    case 'work':
      return (
        <div>
          <progress class="bar" value={state.share} max={1} aria-label={t('check.title')} />
          <p class="text-sm text-soft">{t('check.working', { n: Math.round(state.share * 100) })}</p>
        </div>
      );
    case 'worked':
      return <p class="font-medium text-good">{t('check.worked')}</p>;
    case 'failed':
      return (
        <p class="flex flex-wrap items-center gap-3" role="alert">
          {state.why}
          <button type="button" class="btn" onClick={again}>
            {t('fault.again')}
          </button>
        </p>
      );
  }
}
