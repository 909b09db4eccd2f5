/* waiting.pml - who waits for whom: somebody gets through, the oldest is never turned away, nobody waits for ever.
 *
 * What atomicity.pml leaves open, since it is a matter of speed alone: when an attempt waits, lets go, or fences. It waits
 * for whoever is undecided. Whoever holds something lets go of all of it for an OLDER command, and tries again: another
 * attempt, with another id and the priority of its command. Nobody is fenced but the dead (-DDIES: the owner of command 0
 * stops at any step, and at some time after that its lease is over). Requests are neither lost nor repeated.
 *
 * Command 0 is the oldest. Whoever has lost its last attempt stays away. Left open are the order in which an attempt asks
 * for its slots, and how often it meets an older one before it lets go. Slots, claims and conditions are those of
 * atomicity.pml. -DHOLD prepares the primary too, as who validates does; -DRESERVE: an escalated command keeps what it holds, moves
 * on to the new head, and decides when it holds all.
 */
#define FREE 0
#define PEND 1
#define COMM 2
#define B(a) (1<<(a))

/* commands: their aggregates (primary first; 9: none), number of participants, esc: its own $tx slot is the primary (a
 * participant more). np 1 and nothing read = a plain append. */
#if SCEN==1            /* cross: A,B against B,A */
#define NO 2
#define NAGG 2
hidden byte ag[6] = {0,1,9, 1,0,9};   hidden byte np[3] = {2,2,0};  hidden byte esc[3] = {0,0,0};
#elif SCEN==2          /* the same two */
#define NO 2
#define NAGG 2
hidden byte ag[6] = {0,1,9, 0,1,9};   hidden byte np[3] = {2,2,0};  hidden byte esc[3] = {0,0,0};
#elif SCEN==3          /* three against the last two of them */
#define NO 2
#define NAGG 3
hidden byte ag[6] = {0,1,2, 1,2,9};   hidden byte np[3] = {3,2,0};  hidden byte esc[3] = {0,0,0};
#elif SCEN==4          /* the same three */
#define NO 2
#define NAGG 3
hidden byte ag[6] = {0,1,2, 0,1,2};   hidden byte np[3] = {3,3,0};  hidden byte esc[3] = {0,0,0};
#elif SCEN==5          /* escalated against a plain append to its last aggregate */
#define NO 2
#define NAGG 2
hidden byte ag[6] = {0,1,9, 1,9,9};   hidden byte np[3] = {3,1,0};  hidden byte esc[3] = {1,0,0};
#elif SCEN==6          /* escalated against an ordinary one, and a plain append */
#define NO 3
#define NAGG 2
hidden byte ag[9] = {0,1,9, 1,0,9, 0,9,9}; hidden byte np[3] = {3,2,1}; hidden byte esc[3] = {1,0,0};
#elif SCEN==7          /* escalated against escalated */
#define NO 2
#define NAGG 2
hidden byte ag[6] = {0,1,9, 0,1,9};   hidden byte np[3] = {3,3,0};  hidden byte esc[3] = {1,1,0};
#elif SCEN==8          /* three escalated */
#define NO 3
#define NAGG 2
hidden byte ag[9] = {0,1,9, 0,1,9, 0,1,9}; hidden byte np[3] = {3,3,3}; hidden byte esc[3] = {1,1,1};
#elif SCEN==9          /* each reads what the other one writes */
#define NO 2
#define NAGG 2
hidden byte ag[6] = {0,1,9, 1,0,9};   hidden byte np[3] = {1,1,0};  hidden byte esc[3] = {0,0,0};
#define NR(a) 1
#endif
#ifndef NR
#define NR(a) 0        /* how many it reads and does not write; behind the others in the list */
#endif
#ifndef TRIES
#define TRIES 1        /* attempts per command; attempt a belongs to command a%NO */
#endif
#ifndef POS
#define POS 1          /* versions per stream */
#endif
#define NT (NO*TRIES)
#define NS (NAGG*POS+NT)
#define NP(a) np[(a)%NO]

typedef Slot { byte st; byte ep; byte by };   /* pending: ep is the slot's own epoch below the pending */
Slot s[NS];
byte key[NT*3], epo[NT*3];                    /* the claims of attempt a: participant i (0 = primary) and where it is free */
#define K(a,i) key[(a)*3+(i)]
#define E(a,i) epo[(a)*3+(i)]
bit dead, over;                               /* the owner of command 0; its lease */
byte gEnded, gLost;                           /* ghosts: commands that got through; that lost their last attempt */
hidden byte x;
hidden byte SOMEBODY, OLDEST, LIVING;         /* and STUCK: an end in which somebody waits */

#define FREEAT(k,e) (s[k].st==FREE && s[k].ep==(e))
#define OURS(k,a,state) (s[k].st==state && s[k].by==(a))
#define COMMITTED(a) OURS(K(a,0),a,COMM)
#ifdef HOLD
#define HOLDS(a) (NP(a)+NR(a)>1)
#define READY(a) (HOLDS(a) -> OURS(K(a,0),a,PEND) : FREEAT(K(a,0),E(a,0)))
#define UNDECIDED(a) (FREEAT(K(a,0),E(a,0)) || OURS(K(a,0),a,PEND))
#else
#define HOLDS(a) 0
#define READY(a) FREEAT(K(a,0),E(a,0))
#define UNDECIDED(a) FREEAT(K(a,0),E(a,0))
#endif
#define IS_PLAIN(a) (NP(a)+NR(a)==1)
#define ALL(a) (B(NP(a))-1-!HOLDS(a))         /* the participants that are prepared */

/* whether attempt a lets go for attempt b */
#ifdef NEVER           /* mutation: nobody lets go, as of two that are equally old */
#define OUTRANKED(a,b) 0
#elif defined(ALWAYS)  /* mutation: both let go, as of two that are equally old */
#define OUTRANKED(a,b) 1
#elif defined(YOUNGER) /* mutation: the older one lets go */
#define OUTRANKED(a,b) ((a)%NO < (b)%NO)
#elif defined(ANEW)    /* mutation: each attempt is as old as itself */
#define OUTRANKED(a,b) ((b) < (a))
#else
#define OUTRANKED(a,b) ((b)%NO < (a)%NO)
#endif
#ifdef PATIENT         /* mutation: the dead are waited for */
#define MAY_BE_FENCED(b) 0
#elif defined(WOUND)   /* mutation: the younger is fenced, alive or dead */
#define MAY_BE_FENCED(b) (o < (b)%NO)
#else
#define MAY_BE_FENCED(b) (over && (b)%NO==0)
#endif

inline undo(k) { s[k].st=FREE; s[k].by=0; s[k].ep++ }
inline fence(b) { if :: s[K(b,0)].st==PEND -> s[K(b,0)].st=FREE; s[K(b,0)].by=0 :: else fi; s[K(b,0)].ep++ }
inline refuse() {
#ifdef OLDEST_WINS
  x=0; do :: x<o && (gEnded & B(x)) -> x++ :: else -> break od;
  OLDEST = (!esc[o] || x<o); assert(OLDEST); x=0;        /* whoever is escalated lets go only while an older one is there */
#endif
  goto refused }

/* what stands in slot k, of the attempt b: settled, let go for, or waited for */
inline meet(k,b) {
  if
  :: atomic { COMMITTED(b) -> if :: OURS(k,b,PEND) -> s[k].st=COMM :: else fi }
  :: atomic { !COMMITTED(b) && !UNDECIDED(b) -> if :: OURS(k,b,PEND) -> undo(k) :: else fi }
  :: atomic { UNDECIDED(b) && MAY_BE_FENCED(b) -> fence(b) }
  :: atomic { UNDECIDED(b) && !MAY_BE_FENCED(b) && done && OUTRANKED(a,b) -> refuse() }
  :: atomic { !OURS(k,b,PEND) -> skip }
  fi }

#ifdef RESERVE
#define RESERVES esc[o]
#else
#define RESERVES false
#endif
proctype writer(byte o) {
  byte a=o, i, k, v, b, done, lost; bit late;    /* done: what is held; late: it began after the lease was over */
  { i=0;
again:
    late=over;
    do                                                           /* decide: where do the streams end? each at its own moment */
    :: i<NP(a)+NR(a) ->
       atomic {
         if
         :: esc[o] && i==0 -> K(a,0)=NAGG*POS+a; E(a,0)=0; i++
         :: else ->
            k=ag[o*3+i-esc[o]]*POS;
            do :: v<POS && s[k].st==COMM -> v++; k++ :: else -> break od;
            if
            :: v>=POS -> goto stop                               /* end of the modelled stream */
            :: v<POS && (s[k].st==FREE || RESERVES) -> K(a,i)=k; E(a,i)=s[k].ep; i++
            :: else -> b=s[k].by+1
            fi
         fi; v=0 };
       if :: b -> meet(k,b-1) :: else fi; k=0; b=0
    :: atomic { i>=NP(a)+NR(a) -> i=0; break }
    od;
    do                                                           /* prepare, in any order */
    :: atomic { done!=ALL(a) ->
         if
         :: HOLDS(a) && !(done & 1) -> i=0
         :: NP(a)>1 && !(done & 2) -> i=1
         :: NP(a)>2 && !(done & 4) -> i=2
         fi;
         if
         :: s[K(a,i)].st==FREE && (s[K(a,i)].ep==E(a,i) || i>0) -> /* void meanwhile: the decision stands, but for the primary */
            E(a,i)=s[K(a,i)].ep; s[K(a,i)].st=PEND; s[K(a,i)].by=a; done=done|B(i)
         :: s[K(a,i)].st==FREE && s[K(a,i)].ep!=E(a,i) && i==0 -> refuse()
         :: s[K(a,i)].st==COMM ->                                /* the stream has moved on */
            if :: RESERVES -> K(a,i)=K(a,i)+1; E(a,i)=s[K(a,i)].ep :: else -> refuse() fi
         :: s[K(a,i)].st==PEND -> b=s[K(a,i)].by+1
         fi };
       if :: b -> k=K(a,i); meet(k,b-1) :: else fi; i=0; k=0; b=0
    :: atomic { done==ALL(a) -> i=NP(a); break }
    od;
    do                                                           /* validate */
    :: i<NP(a)+NR(a) ->
       atomic {
         if
         :: s[K(a,i)].st==FREE -> i++
         :: s[K(a,i)].st==COMM -> refuse()
         :: s[K(a,i)].st==PEND -> k=K(a,i); b=s[k].by+1
         fi };
       if :: b -> meet(k,b-1) :: else fi; k=0; b=0
    :: atomic { i>=NP(a)+NR(a) -> i=1; break }
    od;
    do                                                           /* commit; a plain append waits, the others know that they lost */
    :: atomic { READY(a) -> s[K(a,0)].st=COMM; s[K(a,0)].by=a; gEnded=gEnded|B(o); break }
    :: atomic { !IS_PLAIN(a) && !READY(a) -> refuse() }
    :: atomic { IS_PLAIN(a) && s[K(a,0)].st==FREE && !READY(a) -> E(a,0)=s[K(a,0)].ep }
    :: atomic { IS_PLAIN(a) && s[K(a,0)].st==COMM -> refuse() }
    :: atomic { IS_PLAIN(a) && s[K(a,0)].st==PEND -> k=K(a,0); b=s[k].by };
       meet(k,b); k=0; b=0
    od;
    do
    :: atomic { i<NP(a) -> if :: OURS(K(a,i),a,PEND) -> s[K(a,i)].st=COMM :: else fi; i++ }
    :: i>=NP(a) -> goto stop
    od;
refused:
    i=0; k=0; v=0; b=0;
    do                                                           /* let go of what is held */
#ifdef KEEPS           /* mutation: it stays */
    :: i<NP(a) -> i++
#else
    :: atomic { i<NP(a) -> if :: OURS(K(a,i),a,PEND) -> undo(K(a,i)) :: else fi; i++ }
#endif
    :: atomic { i>=NP(a) -> i=0; done=0; break }
    od;
    atomic {
#ifdef DIES
      if :: late -> lost++ :: else fi;                           /* once at most: if it has fenced its own primary */
      LIVING = (lost<2); assert(LIVING);                         /* LIVING: the dead one's lease over, it gets through */
#endif
      a=a+NO;
      if :: a<NT -> goto again :: else -> a=o; gLost=gLost|B(o) fi;
      SOMEBODY = (gLost!=B(NO)-1); assert(SOMEBODY) }            /* SOMEBODY gets through */
  } unless { o==0 && dead };
stop: skip
}

#ifdef DIES
proctype death() {
end:
  dead=1; over=1
}
#endif
init { atomic {
  run writer(0); run writer(1);
#if NO>2
  run writer(2);
#endif
#ifdef DIES
  run death();
#endif
  skip } }
#ifdef REACH           /* not vacuous: this must be violated */
active proctype reach() { assert(!(REACH)) }
#endif
