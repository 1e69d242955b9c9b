import { SinkError } from '../sink.ts'
import type { GitRemote } from './remote.ts'

type Remote = Pick<GitRemote, 'host' | 'port' | 'scheme' | 'url'>

interface Cause {
  readonly is: RegExp | ((stderr: string, remote: Remote) => boolean)
  readonly errorClass: 'terminal' | 'forbidden' | 'transient'
  readonly sentence: string
  /** the host is named before the sentence */
  readonly isOfHost?: boolean
  /** another address of the host may answer */
  readonly isUnreachable?: boolean
}

const FULL =
  /^.*(No space left on device|Disk quota exceeded|unable to write new index file|sha1 file .* write error).*$/gm

/**
 * Whose disk is full. What a server says while nothing is marked as its own comes bare, unless it is reached by http: one in files says
 * where, and of ssh it cannot be told.
 */
function fullDisk(stderr: string, { scheme, url }: Remote): 'repository' | 'agent' | 'either' | undefined {
  const lines = stderr.match(FULL)
  if (!lines) return undefined
  const path = scheme === 'file' ? decodeURIComponent(new URL(url).pathname).replace(/\/+$/, '') : ''
  const isOfRemote = (line: string) => line.startsWith('remote: ') || (path !== '' && line.includes(path))
  if (lines.some(isOfRemote)) return 'repository'
  return scheme === 'http' || scheme === 'https' ? 'agent' : 'either'
}

/** What git and ssh say in English (LC_ALL=C), the telling ones first. */
const CAUSES: readonly Cause[] = [
  {
    is: (stderr, remote) => fullDisk(stderr, remote) === 'repository',
    errorClass: 'transient',
    sentence: 'the disk that the repository is on is full: whoever runs it must make room there',
  },
  {
    // Where it stands on the machine is nothing of the tenant's.
    is: (stderr, remote) => fullDisk(stderr, remote) === 'agent',
    errorClass: 'transient',
    sentence: 'the disk of the agent is full: whoever runs it must make room (BUFFER_DIR)',
  },
  {
    is: (stderr, remote) => fullDisk(stderr, remote) === 'either',
    errorClass: 'transient',
    sentence:
      'a disk is full, that of the repository or that of the agent (BUFFER_DIR), which git does not say: whoever runs them must make room',
  },
  {
    is: /unpack failed: unable to create temporary object directory|^remote: .*couldn't write '/m,
    errorClass: 'transient',
    sentence:
      'the repository cannot be written to: its disk is full or read-only, or its files belong to another user; whoever runs it must see to it',
  },
  {
    is: /Out of memory|Cannot allocate memory|cannot create thread|File too large|File size limit exceeded|died of signal 25|invalid index-pack output/,
    errorClass: 'terminal',
    sentence:
      'what the server sends is more than an agent takes of a branch (files of 256 MiB, 768 MiB of memory): give it a branch, or a repository, with less in it',
  },
  {
    is: /REMOTE HOST IDENTIFICATION HAS CHANGED/,
    errorClass: 'terminal',
    sentence:
      'the host key is another one than known_hosts of the Secret says: nothing was sent. Find out why it changed; then put the new key into known_hosts',
  },
  {
    is: /Host key verification failed|host key is known for/,
    errorClass: 'terminal',
    sentence: 'known_hosts of the Secret has no key of this host: add the line of `ssh-keyscan`, after checking it',
  },
  {
    is: /Load key .*(invalid format|error in libcrypto)/,
    errorClass: 'terminal',
    sentence: 'the ssh key of the Secret cannot be read: give a private key in OpenSSH format without a passphrase',
  },
  {
    is: /Permission denied \(|Too many authentication failures/,
    errorClass: 'terminal',
    sentence: 'the host does not take the ssh key of the Secret: add its public part there, with write access',
  },
  {
    is: /Authentication failed|could not read (Username|Password)|returned error: 401/,
    errorClass: 'terminal',
    sentence: 'the server does not take the credentials: give a token that may write to the repository',
  },
  {
    is: /returned error: 403/,
    errorClass: 'forbidden',
    sentence: 'the server forbids it with these credentials: give them the right to write to the repository',
  },
  {
    is: /protected branch|\(.*hook declined\)|pre-receive hook|GH006/i,
    errorClass: 'forbidden',
    sentence: 'the server refused the push by a hook, or because the branch is protected',
  },
  {
    is: /returned error: 30\d|unable to update url base from redirection/,
    errorClass: 'terminal',
    sentence: 'the server sends elsewhere, which is not followed: write the final address into the endpoint',
  },
  {
    is: /returned error: 404|repository .*not found|not appear to be a git repository|no such repository/i,
    errorClass: 'terminal',
    sentence: 'there is no such repository, or these credentials may not see it',
  },
  {
    is: /does not match target host ?name|no alternative certificate subject name/i,
    errorClass: 'terminal',
    sentence: 'the certificate of the server is for another name: name it in the endpoint as the certificate does',
  },
  {
    is: /certificate/i,
    errorClass: 'terminal',
    sentence:
      'the certificate of the server is not trusted: give the CA that signed it in tls.caBundle or tls.caSecretRef',
  },
  {
    is: /Could not resolve host(name)?|Name or service not known|Temporary failure in name resolution/,
    errorClass: 'transient',
    sentence: 'its name is not known',
    isOfHost: true,
  },
  {
    is: /Connection refused|Failed to connect|connect to host|No route to host|Network is unreachable/,
    errorClass: 'transient',
    sentence: 'it does not answer',
    isOfHost: true,
    isUnreachable: true,
  },
  {
    is: /returned error: 429/,
    errorClass: 'transient',
    sentence: 'the server asks for fewer requests',
  },
  {
    is: /returned error: 5\d\d|timed out|Connection reset|hung up|early EOF|unexpected disconnect|RPC failed|Connection closed|Empty reply|Operation too slow/,
    errorClass: 'transient',
    sentence: 'the server broke off',
  },
]

/** Whether another address of the host may answer where this one did not. */
export const isUnreachable = (stderr: string, remote: Remote): boolean =>
  causeOf(stderr, remote)?.isUnreachable === true

/** Whether a server may not write to its own disk: what it says of a branch then is not that others were faster. */
export const cannotWrite = (stderr: string): boolean => /^remote: .*couldn't write '/m.test(stderr)

const causeOf = (stderr: string, remote: Remote): Cause | undefined =>
  CAUSES.find(({ is }) => (typeof is === 'function' ? is(stderr, remote) : is.test(stderr)))

/** What git said of a remote, as an error of the sink. Nothing that looks like one of the secrets is in it. */
export function gitFailure(stderr: string, remote: Remote, secrets: readonly string[]): SinkError {
  const { host, port } = remote
  const cause = causeOf(stderr, remote)
  const words = withoutSecrets(remoteWords(stderr), secrets)
  const said = words === '' ? '' : ` (it says: ${words})`
  const of = cause?.isOfHost ? `${host}, port ${port}: ` : ''
  if (cause) return new SinkError(cause.errorClass, `${of}${cause.sentence}${said}`)
  const last = /^(?:fatal|error|ERROR): (.*)$/m.exec(stderr)?.[1] ?? 'no reason was given'
  return new SinkError('transient', `git failed: ${withoutSecrets(last, secrets).slice(0, 300)}${said}`)
}

/** What the server lets its users read. */
const remoteWords = (stderr: string): string =>
  [...stderr.matchAll(/^remote: (.*)$/gm)]
    .map(([, text = '']) => text.trim())
    .filter((text) => text !== '')
    .join(' ')
    .slice(0, 300)

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.filter((secret) => secret.length > 3).reduce((left, secret) => left.replaceAll(secret, '***'), text)
