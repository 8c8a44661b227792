/** What a buyer can get ready before a sale: signed in, an address, the clock. */
import { Link } from 'wouter-preact';
import { reading } from '../api/clock';
import { useLoad } from '../api/load';
import { person } from '../api/session';
import type { Sale } from '@seckill/client/types';
import type { Key } from '../i18n/en';
import { t } from '../i18n/text';
import { addressLine, readAddresses } from '../pages/addresses';
import { Icon } from '../ui/icons';

/** A reading of the server's clock that is more exact than this, in ms, is good. */
const EXACT_MS = 500;

/** The list; for a sale that requires an address also while it is open. */
export function Checklist({ sale }: { sale: Sale }) {
  const back = encodeURIComponent(location.pathname + location.search);
  const bound = reading.value?.bound;
  return (
    <section>
      <h2 class="mb-2 font-medium">{t('ready.title')}</h2>
      <ul class="grid gap-1.5 text-sm">
        <Step done={person.value !== null} label="ready.signIn" href={`/sign-in?next=${back}`} />
        {sale.requiresAddress && <Address />}
        <Step done={bound !== undefined && bound <= EXACT_MS} label="ready.clock" />
      </ul>
    </section>
  );
}

function Step({ done, label, href, detail }: { done: boolean; label: Key; href?: string; detail?: string | undefined }) {
  return (
    <li class="flex items-start gap-2">
      <span class={done ? 'text-good' : 'text-soft'}>
        <Icon name={done ? 'check' : 'bell'} />
        <span class="sr-only">{t(done ? 'ready.done' : 'ready.open')} </span>
      </span>
      <span>
        {href && !done ? (
          <Link class="link" href={href}>
            {t(label)}
          </Link>
        ) : (
          t(label)
        )}
        {detail && <span class="block text-soft">{detail}</span>}
      </span>
    </li>
  );
}

/** Whether the user has an address; where the order will go. */
function Address() {
  const { page } = useLoad(`addresses ${person.value?.id ?? ''}`, (signal) => (person.peek() ? readAddresses(signal) : Promise.resolve([])));
  const chosen = page.value.state === 'ready' ? page.value.data.find((each) => each.default) : undefined;
  const detail = chosen && `${chosen.recipient.name}, ${addressLine(chosen.recipient)}`;
  return <Step done={chosen !== undefined} label="ready.address" href="/account#addresses" detail={detail} />;
}
