import { shown } from './json.ts'

/** An address as a sink has it, taken apart; or why it is none. */
export type Endpoint =
  | {
      /** how the sink is spoken to, without the colon, such as https, ssh, nats */
      readonly scheme: string
      /** hosts that will be connected to; none of a file, and of a bucket in the store of the region */
      readonly hosts: readonly string[]
      /** a password stands in it */
      readonly hasPassword?: boolean
      /** branch that the address itself names */
      readonly branch?: string
    }
  | { readonly problem: string }

const SCP = /^([\w.-]+@)?(\[[0-9a-fA-F:.]+\]|\w[\w.-]*):(?!\/\/|:)(.+)$/
const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//

const schemeOf = (text: string): string | undefined => SCHEME.exec(text)?.[1]?.toLowerCase()

function parsed(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}

/** The remote of git: a URL, or `user@host:path`. */
export function gitEndpoint(text: string): Endpoint {
  const example = 'https://git.example.com/team/inventory.git or git@git.example.com:team/inventory.git'
  const scheme = schemeOf(text)
  if (scheme === undefined) {
    const [, , host, path] = SCP.exec(text) ?? []
    return host && path ? { scheme: 'ssh', hosts: [host] } : { problem: `is ${shown(text)}: write ${example}` }
  }
  if (!['https', 'http', 'ssh', 'file'].includes(scheme))
    return { problem: `is ${shown(text)}: git is reached by https or ssh, such as ${example}` }
  const url = parsed(text)
  if (!url || url.pathname.length < 2)
    return { problem: `is ${shown(text)}: a repository is missing, as in ${example}` }
  if (scheme !== 'file' && url.hostname === '')
    return { problem: `is ${shown(text)}: a host is missing, as in ${example}` }
  if (url.hostname.startsWith('-')) return { problem: `is ${shown(text)}: no host begins with "-"; write ${example}` }
  const branch = /^#branch=(.+)$/.exec(url.hash)?.[1]
  if (url.hash !== '' && !branch) return { problem: `ends in ${shown(url.hash)}: only #branch=NAME may stand there` }
  return {
    scheme,
    hosts: scheme === 'file' ? [] : [url.hostname],
    hasPassword: url.password !== '' || (scheme !== 'ssh' && url.username !== ''),
    ...(branch && { branch }),
  }
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/

/** A bucket: `s3://bucket/prefix`, `bucket/prefix`, or `https://host/bucket/prefix` of a store elsewhere. */
export function bucketEndpoint(text: string): Endpoint {
  const example = 's3://bucket/prefix, or https://s3.example.com/bucket/prefix'
  const scheme = schemeOf(text)
  if (scheme === 'gs')
    return {
      problem: `is ${shown(text)}: Google's buckets are reached by their S3 interface, as https://storage.googleapis.com/BUCKET with HMAC keys`,
    }
  const isBucket = (name: string | undefined) => name !== undefined && BUCKET.test(name)
  const noBucket = {
    problem: `is ${shown(text)}: a bucket (3 to 63 small letters, digits, "." and "-") is missing, as in ${example}`,
  }
  if (scheme === undefined || scheme === 's3') {
    const [bucket] = text.replace(SCHEME, '').split('/')
    return isBucket(bucket) ? { scheme: 's3', hosts: [] } : noBucket
  }
  const url = parsed(text)
  if ((scheme !== 'https' && scheme !== 'http') || !url) return { problem: `is ${shown(text)}: write ${example}` }
  if (!isBucket(url.pathname.split('/')[1])) return noBucket
  return { scheme, hosts: [url.hostname], hasPassword: url.username !== '' || url.password !== '' }
}

/** One server, or several with commas between: `host:port`, with or without one of the schemes. */
export function serversEndpoint(text: string, schemes: readonly string[], example: string): Endpoint {
  const hosts: string[] = []
  let hasPassword = false
  for (const one of text.split(',').map((part) => part.trim())) {
    const scheme = schemeOf(one)
    const url = parsed(scheme === undefined ? `tcp://${one}` : one)
    if ((scheme !== undefined && !schemes.includes(scheme)) || !url || url.hostname === '' || /\s/.test(one))
      return { problem: `is ${shown(text)}: write ${example}` }
    hosts.push(url.hostname)
    hasPassword ||= url.username !== '' || url.password !== ''
  }
  return { scheme: schemeOf(text) ?? schemes[0] ?? '', hosts, hasPassword }
}
