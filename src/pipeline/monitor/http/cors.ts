/** Which pages of others may use the interface. */
export class Origins {
  readonly #exact: ReadonlySet<string>
  readonly #hosts: readonly string[]

  /** @param allowed hosts, meant with their sub-domains and https alone; or whole origins such as `http://localhost:5173` */
  constructor(allowed: readonly string[]) {
    this.#exact = new Set(allowed.filter((text) => text.includes('://')))
    this.#hosts = allowed.filter((text) => !text.includes('://')).map((host) => host.toLowerCase())
  }

  allows(origin: string): boolean {
    if (this.#exact.has(origin)) return true
    const match = /^https:\/\/([^/?#@\s]+)$/.exec(origin)
    const host = match?.[1]?.toLowerCase()
    return host !== undefined && this.#hosts.some((one) => host === one || host.endsWith(`.${one}`))
  }

  /** @returns what an answer says of it: nothing to origins that are not allowed */
  headers(origin: string | undefined): Readonly<Record<string, string>> {
    if (origin === undefined || !this.allows(origin)) return { vary: 'Origin' }
    return {
      vary: 'Origin',
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, POST, PUT, DELETE, OPTIONS',
      'access-control-allow-headers': 'Content-Type, Authorization',
    }
  }
}

/** A page of the same host is no other's; who says no origin is no page. */
export function isForeign(origin: string | undefined, host: string | undefined, allowed: Origins): boolean {
  if (origin === undefined || allowed.allows(origin)) return false
  return !URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase()
}
