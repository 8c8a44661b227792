/** Codes that give access to a sale: from the link of its page, or typed there. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link, useLocation, useSearch } from 'wouter-preact';
import type { Sale } from '@seckill/client/types';
import { toFault } from '@seckill/client/fault';
import { request } from '../api/client';
import { now } from '../api/clock';
import { currentUser } from '../api/session';
import { tabStore } from '../api/storage';
import { RedeemAccessCode } from '../documents/redeem';
import { bounded } from '../forms/bounded';
import { explain, faultText, t } from '../i18n/text';
import { opensFor } from '../purchase/button';

const key = (slug: string): string => `code ${slug}`;

/** Redeems a code; returns why not, null = done. Throws faults. */
async function redeem(slug: string, code: string): Promise<string | null> {
  const { redeemAccessCode: done } = await request(RedeemAccessCode, { input: { slug, code } });
  const failure = done?.userErrors[0];
  return failure ? explain(failure) : null;
}

export interface LinkedCode {
  /** Whether a code of a link waits for a user. */
  waits: boolean;
  /** Why a code of a link was refused. */
  why: string | null;
}

/** Takes the code of a link out of the address, keeps it in the tab, and redeems it once there is a user. */
export function useLinkedCode(slug: string, reload: () => void): LinkedCode {
  const [where, go] = useLocation();
  const search = new URLSearchParams(useSearch());
  const linked = search.get('code');
  const why = useSignal<string | null>(null);
  const code = useSignal<string | null>(tabStore.getItem(key(slug)));
  useEffect(() => {
    if (linked === null) return;
    search.delete('code');
    tabStore.setItem(key(slug), linked);
    code.value = linked;
    go(`${where}${search.size ? `?${search}` : ''}`, { replace: true });
  }, [linked]);
  const user = currentUser.value?.id;
  useEffect(() => {
    const waiting = code.value;
    if (!user || !waiting) return;
    redeem(slug, waiting).then(
      (refused) => {
        tabStore.removeItem(key(slug));
        code.value = null;
        why.value = refused;
        if (refused === null) reload();
      },
      (thrown) => void (why.value = faultText(toFault(thrown))), // the code stays for the next visit
    );
  }, [user, code.value]);
  return { waits: code.value !== null && !user, why: why.value };
}

/** What a visitor with a link does first. */
export function CodeWaits() {
  return (
    <p class="note" role="status">
      {t('code.waits')}{' '}
      <Link class="link" href={`/sign-in?next=${encodeURIComponent(location.pathname)}`}>
        {t('code.signIn')}
      </Link>
    </p>
  );
}

/** The field for a code, for users whom another rule does not let in already. */
export function CodeForm({ sale, reload }: { sale: Sale; reload: () => void }) {
  const why = useSignal<string | null>(null);
  const sending = useSignal(false);
  const mine = sale.viewer?.access;
  const late = !mine?.rule || (mine.rule.kind !== 'CODE' && opensFor(sale) > now());
  if (!mine || !late || !sale.access.some(({ kind }) => kind === 'CODE')) return null;
  const send = async (form: HTMLFormElement): Promise<void> => {
    if (sending.peek()) return;
    sending.value = true;
    try {
      why.value = await redeem(sale.slug, String(new FormData(form).get('code')));
      if (why.value === null) reload();
    } catch (thrown) {
      why.value = faultText(toFault(thrown));
    } finally {
      sending.value = false;
    }
  };
  return (
    <form
      class="flex flex-wrap items-end gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        void send(event.currentTarget);
      }}
    >
      <label class="grid grow gap-1.5 text-sm font-medium">
        {t('code.label')}
        <input name="code" class="field font-normal" required autocomplete="off" autocapitalize="characters" spellcheck={false} ref={bounded({ most: 64 })} />
      </label>
      <button class="btn" aria-disabled={sending.value}>
        {t('code.redeem')}
      </button>
      {why.value && (
        <p class="basis-full font-medium text-warn" role="alert">
          {why.value}
        </p>
      )}
    </form>
  );
}
