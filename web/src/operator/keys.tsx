/** Keys of a table: j and k go through its rows, x chooses one, / searches, ? shows the keys. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Dialog } from '../ui/dialog';
import { ot } from './texts';

const keys = [['j', 'op.keys.next'], ['k', 'op.keys.before'], ['Enter', 'op.keys.open'], ['x', 'op.keys.choose'], ['/', 'op.keys.search'], ['?', 'op.keys.help']] as const;

const typesText = (target: EventTarget | null): boolean => target instanceof HTMLElement && target.matches('input:not([type=checkbox]), textarea, select');

/** Focuses the link that opens a row, `by` rows after the one with the focus. */
function step(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('tr[data-row]')];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)];
  next?.querySelector<HTMLElement>('a[data-open]')?.focus();
  next?.scrollIntoView?.({ block: 'nearest' });
}

/** Listens for the keys while the table is shown; a button lists them. */
export function TableKeys() {
  const help = useSignal(false);
  useEffect(() => {
    const on = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || typesText(event.target) || document.querySelector('dialog[open]')) return;
      if (event.key === 'j' || event.key === 'k') step(event.key === 'j' ? 1 : -1);
      else if (event.key === 'x') document.activeElement?.closest('tr[data-row]')?.querySelector<HTMLInputElement>('input[type=checkbox]')?.click();
      else if (event.key === '/') document.querySelector<HTMLElement>('main [type=search], [role=search] [type=search]')?.focus();
      else if (event.key === '?') help.value = true;
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', on);
    return () => removeEventListener('keydown', on);
  }, []);
  return (
    <>
      <button class="btn max-lg:hidden" onClick={() => (help.value = true)}>
        {ot('op.keys')}
      </button>
      {help.value && (
        <Dialog title={ot('op.keys')} close={() => (help.value = false)}>
          <dl class="grid grid-cols-[auto_1fr] items-baseline gap-x-4 gap-y-2">
            {keys.map(([key, name]) => (
              <div key={key} class="contents">
                <dt><kbd class="chip tabular-nums">{key}</kbd></dt>
                <dd>{ot(name)}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}
