/** Where credentials are sent: an API or registry by scheme, host and port, and the proxy on the way, if any. */
export interface Destination {
  readonly endpoint: string
  readonly proxy?: string
}

/** @param server address with its scheme; what follows host and port makes no difference */
export function destinationOf(server: string, proxyUrl?: string): Destination {
  return { endpoint: originOf(server), ...(proxyUrl && { proxy: originOf(proxyUrl) }) }
}

/** Scheme, host and port as a client reads them: lower case, without the port of the scheme, without name and password. */
export function originOf(address: string): string {
  try {
    const { protocol, host } = new URL(address)
    if (host !== '') return `${protocol}//${host}`
  } catch {
    // No client can ask it either. As text it equals itself and nothing else.
  }
  return address.toLowerCase().replace(/\/\/[^/@]*@/, '//')
}

export const sameDestination = (a: Destination, b: Destination): boolean =>
  a.endpoint === b.endpoint && a.proxy === b.proxy

export const destinationText = ({ endpoint, proxy }: Destination): string =>
  proxy === undefined ? endpoint : `${endpoint} through the proxy ${proxy}`
