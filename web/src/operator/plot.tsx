import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { clockTime } from '../i18n/text';
import { dark } from '../ui/theme';
import type { Point } from './figures';
import { ot } from './texts';

interface Props {
  name: string;
  series: Point[];
  of: (point: Point) => number;
  /** Name of a colour of the shop. */
  colour: 'accent' | 'good' | 'warn';
}

const HEIGHT = 160;
/** Steps between ticks: what is counted comes in whole numbers. */
const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

/** A colour resolved for the theme, by a new element, which is not in transition. */
function resolve(parent: HTMLElement, name: string): string {
  const probe = parent.appendChild(document.createElement('span'));
  probe.style.color = `var(--color-${name})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Time of day of an epoch in seconds, without the seconds. */
const minute = (at: number): string => clockTime(at * 1000).slice(0, 5);

/** A line over the last minutes. The figures above are its text alternative. */
export function Plot({ name, series, of, colour }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const data: UPlot.AlignedData = [series.map(({ at }) => at), series.map(of)];

  useEffect(() => {
    const element = box.current!;
    const axis = { stroke: resolve(element, 'soft'), grid: { stroke: resolve(element, 'line'), width: 1 }, ticks: { show: false } };
    const made = new UPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        cursor: { show: false },
        legend: { show: false },
        axes: [{ ...axis, values: (_plot, splits) => splits.map(minute) }, { ...axis, size: 48, incrs: WHOLE }],
        scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] } },
        series: [{}, { stroke: resolve(element, colour), width: 2, points: { show: false } }],
      },
      data,
      element,
    );
    plot.current = made;
    const sized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    sized.observe(element);
    return () => {
      sized.disconnect();
      made.destroy();
    };
  }, [dark.value]);
  useEffect(() => plot.current?.setData(data), [series]);

  return (
    <figure class="min-w-0">
      <figcaption class="mb-1 flex items-center gap-1.5 text-sm text-soft">
        <span class={`h-0.5 w-4 ${{ accent: 'bg-accent', good: 'bg-good', warn: 'bg-warn' }[colour]}`} />
        {name}
      </figcaption>
      <div ref={box} role="img" aria-label={ot('op.plot', { name })} />
    </figure>
  );
}
