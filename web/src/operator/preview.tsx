/** A sale as buyers will see it: before the opening, while it is open, and afterwards. */
import { useSignal } from '@preact/signals';
import { useId, useRef } from 'preact/hooks';
import type { Previewed } from '../pages/sale-preview';
import { lazy } from '../ui/lazy';
import { Field } from './form';
import { ot } from './texts';
import { Select } from '../ui/select';

/** Buyers fetch the same code, which operators need only for a preview. */
const SalePreview = lazy(() => import('../pages/sale').then((module) => module.SalePreview));

const phases = ['UPCOMING', 'LIVE', 'ENDED'] as const;

/** The preview, which is loaded when it is opened; beside a form it is open where there is room for both. */
export function Preview({ sale, hidden, beside = false }: { sale: Previewed; hidden: boolean; beside?: boolean }) {
  const wide = useRef(beside && matchMedia('(width >= 80rem)').matches);
  const open = useSignal(wide.current);
  return (
    <details class={`card p-5 ${beside ? 'xl:sticky xl:top-16 xl:max-h-[calc(100dvh-5rem)] xl:overflow-y-auto' : ''}`} open={open.value} onToggle={(event) => (open.value = event.currentTarget.open)} data-preview>
      <summary class="head">{ot('op.preview')}</summary>
      {open.value && <Phases sale={sale} hidden={hidden} beside={beside} />}
    </details>
  );
}

function Phases({ sale, hidden, beside }: { sale: Previewed; hidden: boolean; beside: boolean }) {
  const id = useId();
  const phase = useSignal<(typeof phases)[number]>('UPCOMING');
  const item = useSignal(sale.items[0]?.id ?? '');
  const tabs = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (phases.indexOf(phase.peek()) + step + phases.length) % phases.length;
    phase.value = phases[next]!;
    (tabs.current!.children[next] as HTMLElement).focus();
  };
  return (
    <div class="mt-4 grid gap-4">
      <p class="text-sm text-soft">{ot('op.preview.how')}</p>
      <div ref={tabs} role="tablist" aria-label={ot('op.preview')} class="flex flex-wrap gap-2" onKeyDown={onKeyDown}>
        {phases.map((each) => (
          <button
            key={each}
            id={`${id}-${each}`}
            type="button"
            role="tab"
            class="chip min-h-10 px-3 hover:border-edge aria-selected:border-ink aria-selected:font-semibold"
            aria-selected={each === phase.value}
            aria-controls={`${id}-panel`}
            tabIndex={each === phase.value ? 0 : -1}
            onClick={() => (phase.value = each)}
          >
            {ot(`op.preview.${each}`)}
          </button>
        ))}
      </div>
      {sale.items.length > 1 && (
        <Field label={ot('op.detail.item')}>
          <Select value={item.value} change={(value) => (item.value = value)} choices={sale.items.map((each) => ({ value: each.id, label: each.goods.name }))} />
        </Field>
      )}
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${phase.value}`} class={beside ? 'xl:[zoom:0.5]' : ''}>
        <SalePreview sale={sale} itemId={item.value} phase={phase.value} hidden={hidden} />
      </div>
    </div>
  );
}
