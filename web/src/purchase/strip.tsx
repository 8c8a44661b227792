/** The most urgent status: a line on the other pages, and in the title and the icon of the tab. */
import { useSignalEffect } from '@preact/signals';
import { Link, useLocation } from 'wouter-preact';
import { now, second } from '../api/clock';
import { digits, money, t } from '../i18n/text';
import { Icon } from '../ui/icons';
import { Ticking } from '../ui/countdown';
import { titlePrefix } from '../ui/title';
import { urgent, type Shared } from './shared';

function words({ kind, amount }: Shared): string {
  switch (kind) {
    case 'joined':
      return t('room.draw');
    case 'room':
      return t('room.title');
    case 'turn':
      return t('room.yours');
    case 'offer':
      return t('waitlist.offer');
    case 'queue':
      return t('queue.title');
    case 'pay':
      return amount ? t('button.pay', { amount: money(amount) }) : t('status.PENDING_PAYMENT');
  }
}

/** The path of the page where the user continues. */
const pageOf = ({ slug, orderId }: Shared): string => (orderId ? `/orders/${orderId}` : `/s/${slug}`);

/** Statuses that need an action of the user. */
const NEEDS_ACTION: Shared['kind'][] = ['turn', 'offer', 'pay'];

/** Marks the icon and the title of the tab while something waits for the user. */
function useTab(): void {
  useSignalEffect(() => {
    void second.value; // the title counts down
    const status = urgent.value;
    const calls = status !== null && NEEDS_ACTION.includes(status.kind);
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
    const href = calls ? '/assets/icon-alert.svg' : '/assets/icon.svg';
    if (icon && !icon.href.endsWith(href)) icon.href = href;
    const left = calls && status.until ? `${digits(status.until - now(), 'down')} ` : '';
    titlePrefix.value = calls ? `${left}${words(status)} · ` : '';
  });
}

/** The strip. */
export function StatusBanner() {
  const [where] = useLocation();
  useTab();
  const status = urgent.value;
  if (!status || pageOf(status) === where || `/s/${status.slug}` === where || where.startsWith('/sign-in') || where.startsWith('/register')) return null;
  const calls = NEEDS_ACTION.includes(status.kind);
  return (
    <aside aria-label={t('sheet.label')} class={`print:hidden ${calls ? 'bg-fill text-white' : 'border-b border-line bg-sunk'}`} data-strip={status.kind}>
      <Link href={pageOf(status)} class="mx-auto flex min-h-11 max-w-5xl items-center gap-x-3 px-4 py-1 text-sm">
        <strong key={status.kind}>{words(status)}</strong>
        <span class="min-w-0 grow truncate max-sm:hidden"><bdi>{status.title}</bdi></span>
        <span class="ml-auto font-semibold">{status.until && <Ticking until={status.until} rounding={status.kind === 'joined' ? 'up' : 'down'} />}</span>
        <Icon name="next" size={16} />
      </Link>
    </aside>
  );
}
