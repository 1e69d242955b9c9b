/**
 * The HTTP API: every read passes the access filter, is answered from memory, and is encoded once per state.
 *
 *   state → access → view (kept per cluster state) → body (kept per question, version and sort of principal) → answer
 *   events → coalesced → one frame per subscription → every stream of it
 *
 * /api/v1 speaks the documented documents, /api/v2 base units in pages, /api/v1/stream tells of changes. The page is served
 * beside it. Without a sign-in method it serves loopback only.
 */
export { UnsafeConfigurationError } from './authentication.ts'
export { apiServer } from './server.ts'
export type { ApiConfig, ApiOptions, ApiServer, AuthenticationConfig } from './types.ts'
