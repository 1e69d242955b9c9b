import type { IncomingMessage } from 'node:http'

const maxHeaderLength = 8192

const canonical = (name: string): string => name.toLowerCase().replaceAll('_', '-')

/**
 * The one value of a header, '' where it is absent. undefined where it cannot be believed: it came twice (a client may have
 * sent its own beside the proxy's), came as a variant that some servers take for it (`X_Forwarded_User`), is too long, holds
 * control characters or is no UTF-8.
 */
export function soleHeader(request: IncomingMessage, name: string): string | undefined {
  const { rawHeaders } = request
  const wanted = canonical(name)
  let value: string | undefined
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const given = rawHeaders[index] ?? ''
    if (canonical(given) !== wanted) continue
    if (value !== undefined || given.toLowerCase() !== name.toLowerCase()) return undefined
    value = rawHeaders[index + 1] ?? ''
  }
  const text = utf8(withoutBlanks(value ?? ''))
  return text === undefined || text.length > maxHeaderLength || hasControls(text) ? undefined : text
}

/** Without blanks around it as HTTP knows them. Other white space is part of a name: of its bytes, or of what makes it another. */
export const withoutBlanks = (text: string): string => text.replace(/^[ \t]+|[ \t]+$/g, '')

// Node gives header bytes as Latin-1; proxies send UTF-8.
function utf8(text: string): string | undefined {
  const highest = Math.max(0, ...[...text].map((char) => char.charCodeAt(0)))
  if (highest < 0x80 || highest > 0xff) return text
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return undefined
  }
}

const hasControls = (text: string): boolean => [...text].some((char) => char < ' ' || char === '\u007f')

/** The token of `Authorization: Bearer …`: null without such a header, undefined where there are two or it is malformed. */
export function bearerToken(request: IncomingMessage): string | null | undefined {
  const values = request.rawHeaders.filter(
    (_, index, all) => index % 2 === 1 && /^authorization$/i.test(all[index - 1] ?? ''),
  )
  if (!values.some((value) => /^\s*bearer\b/i.test(value))) return null
  const token = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec((values[0] ?? '').trim())?.[1]
  return values.length === 1 ? token : undefined
}
