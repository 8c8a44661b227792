/** Line icons on a grid of 24. They are decoration: the text beside them, or a label, says the same. */
const paths = {
  sun: 'M12 4V2m0 20v-2m8-8h2M2 12h2m13.7-5.7 1.4-1.4M4.9 19.1l1.4-1.4m11.4 0 1.4 1.4M4.9 4.9l1.4 1.4M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0Z',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z',
  half: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Zm0 0v18',
  globe: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Zm-9 9h18M12 3c5 5 5 13 0 18-5-5-5-13 0-18Z',
  person: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm-7 8c1-4 4-5 7-5s6 1 7 5',
  close: 'm6 6 12 12M18 6 6 18',
  calendar: 'M5 6h14a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1Zm-1 5h16M8 3v5m8-5v5',
  check: 'm5 13 4.5 4.5L19 7',
  bell: 'M6 16V11a6 6 0 1 1 12 0v5l1.5 2h-15zm4 4h4',
  search: 'm20 20-4.5-4.5M17 10.5a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0Z',
  next: 'm9 5 7 7-7 7',
  more: 'M4.5 12h1m6 0h1m6 0h1',
  bank: 'M4 9h16L12 4 4 9Zm2 1v8m4-8v8m4-8v8m4-8v8M4 20h16',
  card: 'M3 8a2 2 0 0 1 2-2h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2Zm0 2h18M6 15h4',
  chat: 'M9.5 4C5.9 4 3 6.4 3 9.4c0 1.7.9 3.2 2.4 4.2L5 16l2.6-1.4m8.1 5.4 2.3 1.2-.3-2.1c1.4-.9 2.3-2.2 2.3-3.7 0-2.7-2.6-4.9-5.8-4.9s-5.7 2.2-5.7 4.9 2.5 4.9 5.7 4.9Z',
  wallet: 'M4 7h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2Zm0 0 11-3v3m1 6h4',
};

/** The icon of a name that the server gave; a card for names that are newer than this page. */
export function iconOf(name: string): keyof typeof paths {
  return name in paths ? (name as keyof typeof paths) : 'card';
}

/** A tick in a disc, which is drawn once. */
export function Tick({ size }: { size: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" class="tick inline-block shrink-0 text-good" fill="none" aria-hidden="true">
      <circle cx="12" cy="12" r="12" fill="currentColor" />
      <path d="m6.5 12.5 4 4 7-8" pathLength={1} class="stroke-page" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

/** An icon, as large as the text beside it. */
export function Icon({ name, size = 20 }: { name: keyof typeof paths; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
