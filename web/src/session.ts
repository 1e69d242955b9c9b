import { createContext, use } from 'react'
import type { SessionView } from './contract.ts'

/** Who looks; null until the hub has said so. */
export const SessionContext = createContext<SessionView | null>(null)
export const useSession = (): SessionView | null => use(SessionContext)
