/** The frame of pages about what waits for a decision. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLoad, type Loaded } from '../api/load';
import { useRefresh } from '../api/refresh';
import { count } from '../i18n/text';
import { Stale, Title, Unready } from '../ui/bits';
import { ot, type OpKey } from './texts';

interface Props<T> {
  of: Loaded<T>;
  title: (data: T) => ComponentChildren;
  /** Beside the title; a button that loads again without it. */
  beside?: ComponentChildren;
  class?: string;
  children: (data: T) => ComponentChildren;
}

/** A page with its title, once its data is there. */
export function Shell<T>({ of: { page, reload }, title, beside, class: layout = 'grid-cols-1 gap-6', children }: Props<T>) {
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} />;
  const { data, fault } = page.value;
  return (
    <div class={`grid ${layout}`}>
      <div class="flex flex-wrap items-center justify-between gap-3">
        <Title>{title(data)}</Title>
        {beside ?? (
          <button class="btn" onClick={reload}>
            {ot('op.refresh')}
          </button>
        )}
      </div>
      <Stale fault={fault} again={reload} />
      {children(data)}
    </div>
  );
}

/** The counts of lists that are loaded page by page. The lists load again with `loads` as their key. */
export function useCounts<T>(key: string, load: (signal: AbortSignal) => Promise<T | null>): { of: Loaded<T>; loads: number } {
  const { page, reload: recount } = useLoad(key, load);
  useRefresh(recount);
  const loads = useSignal(0);
  const reload = (): Promise<void> => {
    loads.value++;
    return recount();
  };
  return { of: { page, reload }, loads: loads.value };
}

/** A list with its heading and its length. */
export function Part(props: { name: OpKey; none: OpKey; many: number; children: ComponentChildren }) {
  return (
    <section class="card p-5">
      <h2 class="head mb-3">
        {ot(props.name)} <span class="font-normal text-soft tabular-nums">{count(props.many)}</span>
      </h2>
      {props.many ? <div class="grid grid-cols-1 gap-2">{props.children}</div> : <p class="text-soft">{ot(props.none)}</p>}
    </section>
  );
}
