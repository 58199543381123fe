/* Permits that go from a caller to the next one of its process (PASSED=n): for how long, and with
 * which tokens. */
#if PASSED > 0
bool isOld[SLOTS];             /* a tick has passed since its client has had this hold: 25 ms */
/* Besides that of the hold: for each caller that it was asked for, and for each pass. */
#if defined(FLAW_PERMIT_TOKENS_NOT_RESERVED)
#define RESERVES(k) 0
#else
#define RESERVES(k) (UP_TO(k) != WANT(k) && !SHARES(k) -> UP_TO(k) - 1 + PASSED : 0)
#endif
#ifdef FLAW_PASSES_NOT_COUNTED
#define IS_COUNTED(t) true
#else
#define IS_COUNTED(t) (passes[t] < PASSED)
#endif
#ifdef FLAW_PASSED_FOR_LONG
#define IS_YOUNG(t) true
#else
#define IS_YOUNG(t) (!isOld[t])
#endif
#define CLEAR_OLD(t) isOld[t] = false
#define GROWS_OLD(t) if :: st[t] == HAVE -> isOld[t] = true :: else fi
#else
#define RESERVES(k) 0
#define CLEAR_OLD(t) skip
#define GROWS_OLD(t) skip
#endif

/* Callers that come in together have a token each; the last of them has the largest. */
#if PASSED > 0 && defined(TOKENS)
#define TOKEN_OF_LAST(tok_, callers) ((tok_) + ((callers) > 0 && !SHARES(k) -> (callers) - 1 : 0))
#else
#define TOKEN_OF_LAST(tok_, callers) (tok_)
#endif
