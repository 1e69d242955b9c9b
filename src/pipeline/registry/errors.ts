import { FleetError } from '#model'

/** Why a registry could not be asked, or what its answer lacked. The sentence holds no text of the registry but host names. */
export class ProbeError extends FleetError {
  override readonly name = 'ProbeError'
  readonly code: string
  readonly retryable = true

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

interface SystemError {
  readonly name?: unknown
  readonly code?: unknown
  readonly message?: unknown
  readonly errors?: readonly unknown[]
}

/** What the network or the HTTP parser threw while `host` was asked, in our words. */
export function troubleWith(host: string, error: unknown): ProbeError {
  if (error instanceof ProbeError) return error
  const { name, code, message, errors } = (typeof error === 'object' && error !== null ? error : {}) as SystemError
  // Several addresses that all failed: the first says why.
  if (typeof code !== 'string' && errors?.[0]) return troubleWith(host, errors[0])
  // The parser gives most of its errors no code.
  if (name === 'HTTPParserError' && typeof code !== 'string')
    return new ProbeError('not_a_registry', `${host} does not answer in HTTP`, { cause: error })
  const [ours, text] = sentence(host, typeof code === 'string' ? code : '', String(message ?? ''))
  return new ProbeError(ours, text, { cause: error })
}

const UNTRUSTED = new Map([
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'is signed by itself'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'is signed by a CA that is not known here'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'is signed by a CA that is not known here'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'is signed by a CA that is not known here'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'is signed by a CA that is not known here'],
  ['CERT_SIGNATURE_FAILURE', 'has a signature that does not fit'],
  ['CERT_UNTRUSTED', 'is not trusted'],
  ['CERT_REJECTED', 'is not trusted'],
  ['CERT_REVOKED', 'was revoked'],
  ['INVALID_CA', 'is signed by what is no CA'],
  ['INVALID_PURPOSE', 'is not meant for servers'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'is for another name'],
  ['CERT_HAS_EXPIRED', 'has expired'],
  ['CERT_NOT_YET_VALID', 'is not valid yet'],
])

function sentence(host: string, code: string, message: string): [code: string, text: string] {
  const untrusted = UNTRUSTED.get(code)
  if (untrusted) return ['tls_untrusted', `the certificate of ${host} ${untrusted}${remedyOf(code)}`]
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAI_FAIL':
    case 'EAI_NODATA':
      return ['unreachable', `the name ${host} cannot be resolved`]
    case 'ECONNREFUSED':
      return ['unreachable', `${host} refuses connections`]
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      return ['unreachable', `${host} closed the connection before it answered`]
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EADDRNOTAVAIL':
    case 'EACCES':
      return ['unreachable', `there is no way to ${host}`]
    case 'ETIMEDOUT':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return ['timeout', `${host} did not take the connection in time`]
    case 'UND_ERR_HEADERS_OVERFLOW':
    case 'HPE_HEADER_OVERFLOW':
      return ['answer_too_large', `${host} sends more header lines than are read`]
    case 'EPROTO':
      return ['tls_failed', `${host} does not speak TLS at this port, or none that is accepted here`]
  }
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS'))
    return ['tls_failed', `${host} does not speak TLS at this port, or none that is accepted here`]
  if (code.startsWith('HPE_')) return ['not_a_registry', `${host} does not answer in HTTP`]
  // Without a certificate's code, TLS tells by its sentence that the other end hung up.
  if (/secure TLS connection/i.test(message))
    return ['tls_failed', `${host} closed the connection before TLS was established`]
  return ['unreachable', `${host} could not be asked${code && ` (${code})`}`]
}

function remedyOf(code: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return '; use the name it is for as endpoint'
  return BY_ITS_CA.test(code) ? '; give that CA as caBundle' : ''
}

const BY_ITS_CA = /SELF_SIGNED|ISSUER|LEAF_SIGNATURE/
