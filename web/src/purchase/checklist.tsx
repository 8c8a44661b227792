/** What a buyer can get ready before a sale: signed in, a verified contact, an address, the clock. */
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { reading } from '../api/clock';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { currentUser } from '../api/session';
import type { ResultOf } from '@seckill/client/operation';
import type { Sale } from '@seckill/client/types';
import { Requirements } from '../documents/requirements';
import type { Key } from '../i18n/en';
import { hoursOrDays, isolate, t } from '../i18n/text';
import { addressLine, readAddresses } from '../pages/address-book';
import { Icon } from '../ui/icons';

/** The clock step is done when the error of the server's clock is at most this, in ms. */
const EXACT_MS = 500;

/** The list; for a sale that requires an address also while it is open. */
export function Checklist({ sale }: { sale: Sale }) {
  const back = encodeURIComponent(location.pathname + location.search);
  const bound = reading.value?.bound;
  return (
    <List>
      <Step done={currentUser.value !== null} label="ready.signIn" href={`/sign-in?next=${back}`} />
      <Account sale={sale} back={back} />
      {sale.requiresAddress && <Address />}
      <Step done={bound !== undefined && bound <= EXACT_MS} label="ready.clock" />
    </List>
  );
}

/** What a sale requires of the account of a buyer, and what the user lacks; null without a session. */
export type Required = NonNullable<ResultOf<typeof Requirements>['sale']>;

/** The checklist of the preview, for a signed-in buyer without an address. It sends no requests. */
export function ChecklistPreview({ sale, required }: { sale: Sale; required: Required }) {
  return (
    <List>
      <Step done label="ready.signIn" />
      <AccountSteps required={required} back="" />
      {sale.requiresAddress && <Step done={false} label="ready.address" href="/account#addresses" />}
      <Step done label="ready.clock" />
    </List>
  );
}

function List({ children }: { children: ComponentChildren }) {
  return (
    <section>
      <h2 class="mb-2 font-medium">{t('ready.title')}</h2>
      <ul class="grid gap-1.5 text-sm">{children}</ul>
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

/** What the sale requires of the account, and whether the user has it. */
function Account({ sale, back }: { sale: Sale; back: string }) {
  const { page } = useLoad(`requirements ${sale.id} ${currentUser.value?.id ?? ''}`, (signal) => request(Requirements, { id: sale.id }, signal));
  const found = page.value.state === 'ready' ? page.value.data.sale : null;
  return found && <AccountSteps required={found} back={back} />;
}

function AccountSteps({ required: { viewer, minimumAccountAge: hours, requireVerifiedContact }, back }: { required: Required; back: string }) {
  const age = hoursOrDays(hours);
  return (
    <>
      {requireVerifiedContact && (
        <Step
          done={viewer !== null && !viewer.needsVerifiedContact}
          label="ready.contact"
          href={viewer ? '/account' : `/sign-in?next=${back}`}
          detail={viewer?.needsVerifiedContact ? t('ready.contactHow') : undefined}
        />
      )}
      {hours > 0 && (
        <Step done={viewer !== null && !viewer.accountTooNew} label="ready.age" detail={viewer?.accountTooNew ? t('ready.tooNew', { age }) : t('ready.ageOf', { age })} />
      )}
    </>
  );
}

/** Whether the user has an address; where the order will go. */
function Address() {
  const { page } = useLoad(`addresses ${currentUser.value?.id ?? ''}`, (signal) => (currentUser.peek() ? readAddresses(signal) : Promise.resolve([])));
  const chosen = page.value.state === 'ready' ? page.value.data.find((each) => each.default) : undefined;
  const detail = chosen && `${isolate(chosen.recipient.name)}, ${addressLine(chosen.recipient)}`;
  return <Step done={chosen !== undefined} label="ready.address" href="/account#addresses" detail={detail} />;
}
