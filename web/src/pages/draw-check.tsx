/** The checks of draws on the page of a sale. */
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

const ItemDraw = lazy(() =>
  import('./draw-file').then(async (module) => {
    await module.prepare();
    return module.ItemDraw;
  }),
);

/** The section of a drawn item. What it computes with is loaded once it is opened. */
export function DrawnItem({ sale, item }: { sale: Sale; item: Sale['items'][number] }) {
  const open = useSignal(false);
  const file = item.drawing?.state === 'DRAWN' ? item.drawing.recordPath : null;
  if (!file) return null;
  const viewer = sale.viewer;
  const entry = viewer?.items.find((each) => each.item.id === item.id)?.waitlistEntry ?? (viewer?.waitlistEntry?.item.id === item.id ? viewer.waitlistEntry : null);
  return (
    <details class="card p-4" data-draw-file onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary class="cursor-pointer font-medium">{t('draw.title')}</summary>
      {open.value && <ItemDraw file={file} entryId={entry?.id ?? null} />}
    </details>
  );
}

/** The section of the waiting room's draw, from the opening on, for a user who took part in it in this tab. */
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
