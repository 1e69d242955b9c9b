import { SinkError } from '../sink.ts'

/** How much of TLS a connection string asks for. @see PostgreSQL, "SSL Mode Descriptions" */
const MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
export type SslMode = (typeof MODES)[number]

/** Where a database is, and who we are there. */
export interface DatabaseAddress {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
  /** absent: nothing was said */
  readonly sslMode?: SslMode
}

/** Keys of a Secret that may hold the connection string, the first that is not blank wins. */
const KEYS = ['dsn', 'url', 'connectionString', 'DATABASE_URL']

/**
 * The address in a Secret: a URL, or words of the form `host=db user=app`.
 * @throws SinkError, terminal; its sentence holds nothing of the string
 */
export function addressOf(credentials: Readonly<Record<string, Uint8Array>>): DatabaseAddress {
  const texts = KEYS.map((key) =>
    Buffer.from(credentials[key] ?? [])
      .toString('utf8')
      .trim(),
  )
  const text = texts.find((one) => one !== '')
  if (text === undefined)
    throw new SinkError('terminal', `its Secret has no connection string: put one under ${KEYS.join(', ')}`)
  const words = /^postgres(ql)?:\/\//i.test(text) ? wordsOfUrl(text) : wordsOfText(text)
  if (!words) throw unreadable('it can be read neither as a URL nor as words of the form host=db user=app')
  return addressOfWords(words)
}

function addressOfWords(words: ReadonlyMap<string, string>): DatabaseAddress {
  const { host, user } = { host: words.get('host') ?? words.get('hostaddr') ?? '', user: words.get('user') ?? '' }
  const port = Number(words.get('port') || 5432)
  const sslMode = words.get('sslmode')
  if (host === '' || host.startsWith('/')) throw unreadable('it names no host; sockets of the machine are not dialled')
  if (host.includes(',')) throw unreadable('it names several hosts: name one, such as that of a load balancer')
  if (user === '') throw unreadable('it names no user')
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw unreadable('its port is no number from 1 to 65535')
  if (sslMode !== undefined && !isSslMode(sslMode)) throw unreadable(`its sslmode is none of ${MODES.join(', ')}`)
  return {
    host: host.replace(/^\[|\]$/g, ''),
    port,
    user,
    password: words.get('password') ?? '',
    database: words.get('dbname') || user,
    ...(sslMode !== undefined && { sslMode }),
  }
}

const isSslMode = (text: string): text is SslMode => (MODES as readonly string[]).includes(text)

const unreadable = (why: string) =>
  new SinkError(
    'terminal',
    `the connection string cannot be used: ${why}. Write postgres://USER:PASSWORD@HOST:5432/DATABASE, with what is no letter or digit of user and password percent-encoded`,
  )

function wordsOfUrl(text: string): Map<string, string> | undefined {
  try {
    const url = new URL(text)
    const words = new Map([
      ['host', url.hostname],
      ['port', url.port],
      ['user', decodeURIComponent(url.username)],
      ['password', decodeURIComponent(url.password)],
      ['dbname', decodeURIComponent(url.pathname.slice(1))],
    ])
    for (const [key, value] of url.searchParams) words.set(key, value)
    return words
  } catch {
    return undefined
  }
}

/** @see PostgreSQL, "Keyword/Value Connection Strings" */
function wordsOfText(text: string): Map<string, string> | undefined {
  const word = /\s*([a-z_]+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?=\s|$)/gy
  const words = new Map<string, string>()
  let end = 0
  for (let match = word.exec(text); match; match = word.exec(text)) {
    words.set(match[1] ?? '', (match[2] ?? match[3] ?? '').replace(/\\(.)/gs, '$1'))
    end = word.lastIndex
  }
  return text.slice(end).trim() === '' ? words : undefined
}
