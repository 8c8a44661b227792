/**
 * What few buyers see: the state of a draw, and QR codes. It is loaded when it is needed, and imports nothing of the
 * element, which would run twice.
 */
import { encode } from 'uqr';

/** The states of a draw in words. */
export const drawing = {
  en: {
    enter: (closes: string) => `Entries until ${closes}. You need not be here when the draw is made.`,
    in: (closes: string) => `You are in the draw. Entries until ${closes}.`,
    drawn: (_closes: string, rank: number) => `You drew number ${rank}. No unit is offered to you yet; you stay in line.`,
    offered: (_closes: string, rank: number) => `You drew number ${rank}, and a unit is reserved for you.`,
    closed: (closes: string) => `Entries closed ${closes}.`,
  },
  zh: {
    enter: (closes: string) => `报名截止：${closes}。抽签时您无需在线。`,
    in: (closes: string) => `您已报名抽签。报名截止：${closes}。`,
    drawn: (_closes: string, rank: number) => `您抽到第 ${rank} 号，暂未轮到您，仍在候补队列中。`,
    offered: (_closes: string, rank: number) => `您抽到第 ${rank} 号，已为您保留名额。`,
    closed: (closes: string) => `报名已于 ${closes} 截止。`,
  },
};

/** A QR code. */
export function qr(text: string, label: string): SVGElement {
  const { size, data } = encode(text, { border: 2 });
  const path = data.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${size} ${size}`, role: 'img', 'aria-label': label })) svg.setAttribute(name, value);
  svg.append(Object.assign(document.createElementNS('http://www.w3.org/2000/svg', 'path')));
  svg.firstElementChild!.setAttribute('d', path);
  return svg;
}
