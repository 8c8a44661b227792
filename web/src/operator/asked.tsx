/** What became of an act that may need a second person, and where that person confirms it. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';
import { toast } from '../ui/toast';
import { ot } from './texts';

/** The request that an act made; the API answers without one where no second person is needed. */
export interface Asked {
  state: string;
  sale?: { id: string } | null;
}

/** The page where the last request is confirmed. */
const place = signal<string | null>(null);

/** Money of no known order belongs to no sale: it is confirmed beside the unmatched payments. */
const placeOf = ({ sale }: Asked): string => (sale ? `/operate/sales/${sale.id}` : '/operate/aside');

/** Says what became of an act: that it is done, or that a second person has to confirm it, and where. */
export function acted(intervention?: Asked | null | undefined): void {
  if (intervention?.state !== 'REQUESTED') return toast(ot('op.saved'));
  const where = placeOf(intervention);
  if (where === location.pathname) toast(ot('op.asked')); // the page lists it
  else place.value = where;
}

/** The note about the last request of a page, until another page opens. It stays on the screen, below the dialogs. */
export function AskedNote() {
  const [where] = useLocation();
  useEffect(() => () => void (place.value = null), [where]);
  return (
    <div role="status" class="sticky top-2 z-20 sm:top-16 print:hidden">
      {place.value && (
        <p class="note mb-4 font-medium text-warn shadow-lg">
          {ot('op.asked')}{' '}
          <Link class="link" href={place.value}>
            {ot('op.askedWhere')}
          </Link>
        </p>
      )}
    </div>
  );
}
