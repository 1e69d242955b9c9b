import { SinkError } from '../sink.ts'

/** Where objects go. */
export interface Bucket {
  /** address of the store, without bucket */
  readonly endpoint: string
  /** of the endpoint; the bucket may be put before it */
  readonly host: string
  readonly bucket: string
  /** before every key: '', or with a slash at its end */
  readonly prefix: string
  readonly region: string
  /** the bucket is part of the path, not of the host */
  readonly isPathStyle: boolean
}

const DEFAULT_REGION = 'us-east-1'
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const REGION = /^[a-z0-9][a-z0-9-]{0,62}$/i
const OF_AWS = /^s3[.-]([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?$/

/**
 * Reads `s3://bucket/prefix` and `bucket/prefix` (AWS), and `https://host/bucket/prefix` of any store.
 * @param region of the Secret; absent: that of the host, else us-east-1
 * @throws SinkError terminal, for what admission would refuse as well
 */
export function parseBucket(text: string, region: string | undefined): Bucket {
  const endpoint = text.trim()
  const url = /^https?:\/\//i.test(endpoint) ? urlOf(endpoint) : undefined
  const [bucket = '', ...rest] = (url ? pathOf(url) : endpoint.replace(/^s3:\/\//i, '')).split('/')
  if (!BUCKET.test(bucket))
    throw new SinkError(
      'terminal',
      'the endpoint names no bucket: write s3://bucket/prefix, or https://s3.example.com/bucket/prefix',
    )
  const folders = rest.filter((part) => part !== '')
  if (folders.includes('..')) throw new SinkError('terminal', 'the prefix of the endpoint has ".." in it')
  const prefix = folders.length === 0 ? '' : `${folders.join('/')}/`
  // It may become a part of the host; its text is one of the Secret's.
  if (region !== undefined && !REGION.test(region))
    throw new SinkError('terminal', 'the region of the Secret is none: it is a name such as eu-central-1')
  const own = region ?? (url && OF_AWS.exec(url.hostname)?.[1]) ?? DEFAULT_REGION
  if (url) return { endpoint: url.origin, host: url.hostname, bucket, prefix, region: own, isPathStyle: true }
  const host = `s3.${own}.amazonaws.com${own.startsWith('cn-') ? '.cn' : ''}`
  return { endpoint: `https://${host}`, host, bucket, prefix, region: own, isPathStyle: false }
}

function urlOf(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}

/** Without its first slash; what cannot be decoded is taken as it stands. */
function pathOf({ pathname }: URL): string {
  try {
    return decodeURIComponent(pathname.slice(1))
  } catch {
    return pathname.slice(1)
  }
}
