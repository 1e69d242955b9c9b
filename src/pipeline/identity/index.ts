/**
 * Who asks. Every request is decided here and nowhere else: by a bearer token (JWT of a configured issuer, TokenReview), by
 * headers of a proxy that proved itself, by a session cookie (OIDC with PKCE, an administrator's password), or by nothing at
 * all where the port itself is the wall (local administrator, development user).
 *
 *   bearer token present → it alone decides │ proxy proved → its headers │ cookie │ the port → view-as → principal
 *
 * Promises: what cannot be believed is nobody; what cannot be found out is an error, never a guess; an ended session ends
 * everywhere; no token, code, password or cookie reaches a log.
 */
export {
  IdentityUnavailableError,
  SignInFailedError,
  SignInOffError,
  SignInThrottledError,
  TokenRefusedError,
  UnsafeConfigurationError,
} from './errors.ts'
export { bearerToken } from './headers.ts'
export { openIdentity } from './identity.ts'
export { Lookups } from './lookups.ts'
export { localRevocations, revocationsOver } from './revocations.ts'
export { maxTokenBytes, tokenKey } from './token.ts'
export { reviewToken } from './token-review.ts'
export type {
  BearerConfig,
  ClaimNames,
  Identified,
  Identity,
  IdentityConfig,
  IdentityOptions,
  OidcConfig,
  ProxyConfig,
  RevocationStore,
  SharedMarks,
  SignInAnswer,
} from './types.ts'
