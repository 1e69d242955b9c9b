import { SinkError } from '../sink.ts'

/** Where a repository is, without credentials. */
export interface GitRemote {
  readonly scheme: 'https' | 'http' | 'ssh' | 'file'
  /** '' for a file */
  readonly host: string
  readonly port: number
  /** of ssh, where the address names one */
  readonly user?: string
  /** as git takes it */
  readonly url: string
  readonly branch: string
}

const PORTS = { https: 443, http: 80, ssh: 22, file: 0 } as const
const SCP = /^(?:([\w.-]+)@)?(\[[0-9a-fA-F:.]+\]|\w[\w.-]*):(?!\/\/|:)(.+)$/
const BRANCH = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/

/**
 * Reads the endpoint of a sink; user info and passwords in it are dropped, but for the user of ssh.
 * @throws SinkError terminal, for what admission would refuse as well
 */
export function parseRemote(endpoint: string, asked: string | undefined): GitRemote {
  const [address = '', fragment] = split(endpoint.trim())
  const branch = asked ?? fragment ?? 'main'
  if (!BRANCH.test(branch) || branch.includes('..') || branch.endsWith('.lock'))
    throw new SinkError('terminal', `${JSON.stringify(branch)} is no name of a branch`)
  return { ...place(address), branch }
}

const split = (endpoint: string): [string, string | undefined] => {
  const at = endpoint.indexOf('#branch=')
  return at < 0 ? [endpoint, undefined] : [endpoint.slice(0, at), endpoint.slice(at + '#branch='.length)]
}

function place(address: string): Omit<GitRemote, 'branch'> {
  const scp = address.includes('://') ? undefined : SCP.exec(address)
  if (scp) {
    const [, user, host = '', path = ''] = scp
    return { scheme: 'ssh', host, port: PORTS.ssh, ...(user && { user }), url: `${user ?? 'git'}@${host}:${path}` }
  }
  const url = urlOf(address)
  const scheme = url?.protocol.slice(0, -1)
  const isHost = url !== undefined && !url.hostname.startsWith('-')
  if (!isHost || (scheme !== 'https' && scheme !== 'http' && scheme !== 'ssh' && scheme !== 'file'))
    throw new SinkError(
      'terminal',
      'the endpoint is no repository: write https://git.example.com/team/inventory.git, or git@git.example.com:team/inventory.git',
    )
  const user = scheme === 'ssh' ? decodeURIComponent(url.username) || 'git' : ''
  const port = Number(url.port) || PORTS[scheme]
  const authority = `${user && `${user}@`}${url.hostname}${url.port && `:${url.port}`}`
  return {
    scheme,
    host: url.hostname,
    port,
    ...(user && { user }),
    url: `${scheme}://${authority}${url.pathname}`,
  }
}

function urlOf(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
