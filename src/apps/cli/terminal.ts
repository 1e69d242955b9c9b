/** What moves the cursor, colours the terminal, or turns the reading direction: C0 and C1 controls, bidirectional marks. */
export const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Text from a cluster, on one line, as it may reach the terminal of the person who reads it; `-` for nothing. */
export function printable(text: string): string {
  const clean = text.replace(UNSEEN, ' ').replace(/ {2,}/g, ' ').trim()
  return clean === '' ? '-' : clean
}

/** The same with its spaces kept, so that a caret stays under what it points at. */
export const printableLine = (text: string): string => text.replace(UNSEEN, ' ').trimEnd()
