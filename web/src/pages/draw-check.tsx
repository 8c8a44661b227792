/** The check of a draw on the page of its sale, for a user who took part in it in this tab. */
import { useSignal } from '@preact/signals';
import { drawEntry } from '@seckill/client/tickets';
import type { Phase, Sale } from '@seckill/client/types';
import { tabStore } from '../api/storage';
import { t } from '../i18n/text';
import { lazy } from '../ui/lazy';

const Draw = lazy(() =>
  import('./draw').then(async (module) => {
    await module.prepare();
    return module.Draw;
  }),
);

/** The section, from the opening on. What it computes with is loaded once it is opened. */
export function DrawCheck({ sale, phase }: { sale: Pick<Sale, 'id'>; phase: Phase }) {
  const open = useSignal(false);
  const part = phase === 'UPCOMING' || phase === 'CANCELLED' ? null : drawEntry(tabStore, sale.id);
  if (!part) return null;
  return (
    <details class="card p-4" data-draw onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary class="cursor-pointer font-medium">{t('draw.title')}</summary>
      {open.value && <Draw part={part} />}
    </details>
  );
}
