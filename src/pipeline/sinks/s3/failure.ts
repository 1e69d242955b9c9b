import { AddressRefusedError } from '#outbound'
import { SinkError, type SinkErrorClass } from '../sink.ts'

const WRITTEN_MEANWHILE = 'somebody wrote the same object in the same moment: whose it is is looked at again'

/** Of an object that was to be new, and is not. */
export const writtenMeanwhile = (): SinkError => new SinkError('transient', WRITTEN_MEANWHILE)

/** What stores say by name; the first that fits. @see Amazon S3 API Reference, "Error responses" */
const BY_NAME: readonly (readonly [RegExp, SinkErrorClass, string])[] = [
  [/^NoSuchBucket$/, 'terminal', 'there is no such bucket: make it, or change the endpoint'],
  [
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|TokenRefreshRequired|XAdminUserNotFound)$/,
    'terminal',
    'the store does not take the credentials of the Secret: give accessKeyID and secretAccessKey that may write',
  ],
  [
    /^(PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/,
    'terminal',
    'the bucket is in another region: put it as region into the Secret, or write the endpoint of that region',
  ],
  [
    /^RequestTimeTooSkewed$/,
    'transient',
    'the clocks of the agent and of the store are too far apart: set the one that is wrong',
  ],
  [/^ConditionalRequestConflict$/, 'transient', WRITTEN_MEANWHILE],
  [
    /^(AccessDenied|AllAccessDisabled|AccountProblem)$/,
    'forbidden',
    'the store forbids it: these credentials need s3:GetObject, s3:PutObject and s3:DeleteObject below the prefix, and s3:ListBucket, without which what is missing looks forbidden',
  ],
  [
    /^(SlowDown|Throttling|ThrottlingException|RequestLimitExceeded|TooManyRequests)/,
    'transient',
    'the store asks for fewer requests',
  ],
]

const BY_STATUS: readonly (readonly [number, SinkErrorClass, string])[] = [
  [301, 'terminal', 'the store sends elsewhere, which is not followed: write the endpoint of the region of the bucket'],
  [307, 'terminal', 'the store sends elsewhere, which is not followed: write the final address into the endpoint'],
  [401, 'terminal', 'the store does not take the credentials of the Secret'],
  [403, 'forbidden', 'the store forbids it with these credentials'],
  [404, 'terminal', 'there is no such bucket: make it, or change the endpoint'],
  [412, 'transient', WRITTEN_MEANWHILE],
  [429, 'transient', 'the store asks for fewer requests'],
  [507, 'transient', 'the store has no room left: nothing was lost, and it is tried again; give it room'],
]

/** Of an answer that the library throws. */
export const statusOf = (error: unknown): number | undefined =>
  ((error ?? {}) as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|ERR_TLS/

/** What went wrong with a store, as an error of the sink, in our own words: those of stores repeat keys and identities. */
export function s3Failure(error: unknown, endpoint: string): SinkError {
  if (error instanceof SinkError) return error
  const known = [...causes(error)]
  const refused = known.find((one) => one instanceof AddressRefusedError)
  if (refused) return new SinkError('terminal', refused.message, { cause: error })
  const { name = '' } = (error ?? {}) as { name?: string }
  const status = statusOf(error)
  const [, errorClass, sentence] =
    BY_NAME.find(([is]) => is.test(name)) ?? BY_STATUS.find(([code]) => code === status) ?? []
  if (errorClass && sentence) return new SinkError(errorClass, sentence, { cause: error })
  if (known.some(({ code }) => CERTIFICATE.test(String(code))))
    return new SinkError(
      'terminal',
      'the certificate of the store is not trusted: give the CA that signed it in tls.caBundle or tls.caSecretRef',
      { cause: error },
    )
  if (known.some(({ code }) => code === 'EPROTO'))
    return new SinkError(
      'terminal',
      `what answers at ${endpoint} speaks no TLS: write http://, or the port at which it does`,
      { cause: error },
    )
  const code = known.map((one) => one.code).find((one) => typeof one === 'string')
  const sentenceOf =
    status === undefined
      ? `the store at ${endpoint} does not answer${code === undefined ? '' : ` (${code})`}`
      : `the store broke off (status ${status})`
  return new SinkError('transient', sentenceOf, { cause: error })
}

function* causes(error: unknown): Generator<Error & { readonly code?: unknown }> {
  for (let one = error, depth = 0; one instanceof Error && depth < 5; one = one.cause, depth++) yield one
}
