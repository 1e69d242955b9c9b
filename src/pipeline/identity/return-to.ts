const maxLength = 1024

/** A page of ours to come back to: a path on this very site, none of the API; `/` for anything else. */
export function localPath(text: string): string {
  if (text.length > maxLength || !text.startsWith('/') || /[\\\p{C}]/u.test(text)) return '/'
  const here = 'http://here.invalid'
  if (!URL.canParse(text, here)) return '/'
  const { origin, pathname, search, hash } = new URL(text, here)
  // Dots may have moved the path: what counts is where a browser would end up.
  return origin !== here || pathname.startsWith('//') || /^\/api(\/|$)/i.test(pathname) ? '/' : pathname + search + hash
}
