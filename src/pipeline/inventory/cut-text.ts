/** At most so many UTF-16 units of a text. A slice would keep the whole of it in memory. */
export const cutText = (text: string, units: number): string =>
  text.length > units ? Buffer.from(text.slice(0, units), 'utf16le').toString('utf16le') : text
