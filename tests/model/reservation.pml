/* reservation.pml - an escalated command reserves its aggregates, and everything that can go wrong does.
 *
 * Its primary is a slot of its own, $tx. In any order it lays a pending slot WITHOUT events at the head of each of its aggregates;
 * where a stream has moved on it keeps what it holds and reserves at the new head. Holding all it loads, decides, and commits
 * with the events in the $tx slot. Finalising copies them into the reserved slots; one that got no events becomes
 * void(own + 1). The others are ordinary transactions over two aggregates, plain appends, and escalated ones.
 *
 * Requests, owners and bystanders are those of atomicity.pml: every write is one atomic conditional step; `world` is the
 * network (whatever was sent may arrive at any later time, any number of times) and all bystanders (who may fence,
 * finalise and undo at any moment, for leases are never trusted); an owner may stop at any step. Of the requests to reserve one
 * aggregate only the last is kept: those before it met a committed slot or an epoch that has passed, and can never succeed.
 */
#define FREE 0
#define PEND 1
#define COMM 2
#define ESC 0
#define ORD 1
#define PLAIN 2
#define B(a) (1<<(a))
#define NAGG 2
#ifndef POS
#define POS 2          /* versions per stream */
#endif

#if SCEN==1            /* against a transaction whose primary is an aggregate that the escalated one reserves */
#define NO 2
hidden byte kind[2] = {ESC,ORD};       hidden byte ag[6] = {9,0,1, 0,1,9};
#elif SCEN==2          /* against a transaction with the opposite primary */
#define NO 2
hidden byte kind[2] = {ESC,ORD};       hidden byte ag[6] = {9,0,1, 1,0,9};
#elif SCEN==3          /* against plain appends to either aggregate */
#define NO 3
hidden byte kind[3] = {ESC,PLAIN,PLAIN}; hidden byte ag[9] = {9,0,1, 0,9,9, 1,9,9};
#elif SCEN==4          /* two escalated */
#define NO 2
hidden byte kind[2] = {ESC,ESC};       hidden byte ag[6] = {9,0,1, 9,0,1};
#elif SCEN==5          /* against a transaction and a plain append to its primary */
#define NO 3
hidden byte kind[3] = {ESC,ORD,PLAIN}; hidden byte ag[9] = {9,0,1, 0,1,9, 0,9,9};
#endif
#define NP(a) (kind[a]==ESC -> 3 : (kind[a]==ORD -> 2 : 1))
#define NS (NAGG*POS+NO)

typedef Slot { byte st; byte ep; byte by };     /* pending: ep is the slot's own epoch below the pending */
Slot s[NS];
byte key[NO*3], epo[NO*3];
#define K(a,i) key[(a)*3+(i)]
#define E(a,i) epo[(a)*3+(i)]
byte sent[NO];                                  /* bit i: the prepare of participant i is in the network */
byte com;                                       /* commits in the network */
byte sawC, sawA;                                /* attempts that somebody found committed / aborted */
byte wrote[NO];                                 /* escalated: bit i: the $tx slot holds events for participant i */
byte gC, gAck, gTold;                           /* ghosts: committed, acknowledged, owner was told "aborted" */
byte base[NO*3];                                /* ghost: the length of the stream that was loaded */
hidden byte x, y;
hidden byte HELD, LOADED, ATOMIC, EVENTS, ACKED, TOLD, STREAM, FEED, READ;

#define FREEAT(k,e) (s[k].st==FREE && s[k].ep==(e))
#define OURS(k,a,state) (s[k].st==state && s[k].by==(a))
#define COMMITTED(a) OURS(K(a,0),a,COMM)
#define UNDECIDED(a) FREEAT(K(a,0),E(a,0))
#define HAS_EVENTS(a,i) (kind[a]!=ESC || (wrote[a] & B(i)))
#define PART(a,k) (K(a,1)==(k) -> 1 : 2)        /* which participant of an escalated one k is */
#define SHOWS(a,k) (kind[a]!=ESC || HAS_EVENTS(a,PART(a,k)))
/* what a reader who follows everything must find in slot k: command + 1, or 0 */
#define LOGICAL(k) ((s[k].st!=FREE && (gC & B(s[k].by)) && SHOWS(s[k].by,k)) -> s[k].by+1 : 0)

inline check() { d_step {
  x=0;
  do
  :: x<NO ->
     y=(kind[x]==ESC -> 1 : 0);
     do
     :: y<NP(x) ->
        ATOMIC = (!(gC & B(x)) || !HAS_EVENTS(x,y) || (s[K(x,y)].st!=FREE && s[K(x,y)].by==x));
        assert(ATOMIC);                                            /* all of a committed one is there */
        ATOMIC = ((gC & B(x)) || !(sent[x]|com&B(x)) || !OURS(K(x,y),x,COMM));
        assert(ATOMIC);                                            /* nothing of another ever shows */
        EVENTS = (!(gC & B(x)) || HAS_EVENTS(x,y) || !OURS(K(x,y),x,COMM));
        assert(EVENTS); y++                                        /* no version without events */
     :: else -> break
     od; x++
  :: else -> break
  od;
  x=0;
  do
  :: x<NAGG*POS ->
     if
     :: x%POS ->
        STREAM = (!LOGICAL(x) || LOGICAL(x-1)); assert(STREAM);    /* no holes */
        FEED = (s[x].st!=COMM || s[x-1].st==COMM); assert(FEED)    /* in order for a feed, too */
     :: else
     fi; x++
  :: else -> break
  od; x=0; y=0;
  ACKED = ((gAck & gC)==gAck); assert(ACKED);                      /* for ever */
  TOLD = ((gTold & gC)==0); assert(TOLD) } }                       /* told aborted never commits */

inline do_prepare(a,i) { s[K(a,i)].st=PEND; s[K(a,i)].by=a; check() }
inline do_commit(a) {
  HELD = ((NP(a)<2 || OURS(K(a,1),a,PEND)) && (NP(a)<3 || OURS(K(a,2),a,PEND))); assert(HELD);
  LOADED = (kind[a]!=ESC || (base[a*3+1]==K(a,1)%POS && base[a*3+2]==K(a,2)%POS)); assert(LOADED);
  s[K(a,0)].st=COMM; s[K(a,0)].by=a; gC=gC|B(a); check() }
inline do_void(k) { s[k].st=FREE; s[k].by=0; s[k].ep++; check() }
inline do_finalise(a,i) {
  if
#ifdef LOSEEVENTS      /* mutation: a pending slot without events has none to finalise, whatever the $tx slot holds */
  :: kind[a]==ESC -> do_void(K(a,i))
#elif defined(EMPTYCOMMIT) /* mutation: a reserved slot without events finalises to a committed slot without events */
  :: kind[a]==ESC -> s[K(a,i)].st=COMM; check()
#elif defined(KEEPEPOCH) /* mutation: ... or back to the void that it was */
  :: !HAS_EVENTS(a,i) -> s[K(a,i)].st=FREE; s[K(a,i)].by=0; check()
#else
  :: !HAS_EVENTS(a,i) -> do_void(K(a,i))
#endif
  :: else -> s[K(a,i)].st=COMM; check()
  fi }

/* the head of the stream of participant i: k, or wait, or the end of what is modelled */
inline locate(a,i) {
  k=ag[a*3+i]*POS; v=0;
  do
  :: v<POS && s[k].st==COMM -> v++; k++
#ifdef BUILD           /* mutation: reserve behind a commit that is not finalised */
  :: v<POS && s[k].st==PEND && COMMITTED(s[k].by) && SHOWS(s[k].by,k) -> v++; k++
#endif
  :: else -> break
  od;
  if :: v>=POS -> goto stop :: else fi }

proctype owner(byte a) {
  byte i, k, v, h; bit ok;                         /* h: what is held */
  if
  :: kind[a]==ESC -> K(a,0)=NAGG*POS+a; i=1;
#ifdef EARLY           /* mutation: load and decide first, then reserve */
     do
     :: atomic { i<3 -> locate(a,i); if :: s[k].st==FREE -> base[a*3+i]=v; i++ :: else fi; v=0; k=0 }
     :: atomic { i>=3 -> i=1; break }
     od;
#endif
     do
     :: atomic { h!=6 -> if :: !(h & 2) -> i=1 :: !(h & 4) -> i=2 fi; /* reserve */
          locate(a,i);
          if
          :: !UNDECIDED(a) -> goto aborted                       /* fenced: do not go on reserving for the dead */
          :: UNDECIDED(a) && s[k].st==FREE -> K(a,i)=k; E(a,i)=s[k].ep; sent[a]=sent[a]|B(i); ok=1
          :: UNDECIDED(a) && s[k].st==PEND && s[k].by==a -> h=h|B(i) /* an own earlier request got through */
          :: else -> skip                                        /* somebody's pending: wait, holding what I hold */
          fi; v=0; k=0 };
        atomic {
          if
          :: ok && FREEAT(K(a,i),E(a,i)) -> do_prepare(a,i); h=h|B(i)
          :: ok && OURS(K(a,i),a,PEND) -> h=h|B(i)
          :: else -> skip                                        /* refused: look again */
          fi; ok=0; i=0 }
#ifdef IMPATIENT       /* mutation: commit without the answer to the last reservation */
     :: atomic { h && sent[a]==6 -> h=6 }
#endif
     :: atomic { h==6 -> i=1; h=0; break }
     od;
#ifndef EARLY
     do                                                          /* load, each stream at its own moment */
     :: atomic { i<3 -> k=ag[a*3+i]*POS;
          do :: v<POS && s[k].st==COMM -> v++; k++ :: else -> break od;
          base[a*3+i]=v; v=0; k=0; i++ }
     :: atomic { i>=3 -> i=0; break }
     od;
#endif
     if :: wrote[a]=2 :: wrote[a]=4 :: wrote[a]=6 fi             /* decide */
  :: else ->
     do
     :: atomic { i<NP(a) -> locate(a,i);
          if :: s[k].st==FREE -> K(a,i)=k; E(a,i)=s[k].ep; i++ :: else fi; v=0; k=0 }
     :: atomic { i>=NP(a) -> i=0; break }
     od;
     if
     :: kind[a]==ORD ->
        sent[a]=B(1);
        atomic {
          if
          :: FREEAT(K(a,1),E(a,1)) -> do_prepare(a,1)
          :: OURS(K(a,1),a,PEND) -> skip
          :: else -> goto aborted                                /* may still arrive, and its commit was never sent */
          fi }
     :: else
     fi
  fi;
  com=com|B(a);
  if
  :: atomic { UNDECIDED(a) -> do_commit(a); ok=1 }
  :: ok=0                                                        /* refused, or the answer got lost */
  fi;
  if :: ok -> atomic { gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop } :: else fi;
look:
  atomic {
    if
    :: COMMITTED(a) -> gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop
#ifdef NOFENCE         /* mutation: no answer is taken for "aborted" */
    :: !COMMITTED(a) -> goto aborted
#else
    :: UNDECIDED(a) -> do_void(K(a,0)); goto look
    :: !COMMITTED(a) && !UNDECIDED(a) -> goto aborted
#endif
    fi };
aborted:
  atomic { gTold=gTold|B(a); sawA=sawA|B(a); check() };
stop: skip
}

#define CAN(c,what) :: atomic { (c) -> what }
#ifdef DROP            /* mutation: a reservation without events may be dropped without fencing its transaction */
bit dropped;
#define DROPS(a,i) CAN(!dropped && kind[a]==ESC && (sent[a]&B(i)) && OURS(K(a,i),a,PEND) && UNDECIDED(a), dropped=1; do_void(K(a,i)))
#else
#define DROPS(a,i)
#endif
#define PER(a,i) DROPS(a,i) \
  CAN((sent[a]&B(i)) && FREEAT(K(a,i),E(a,i)), do_prepare(a,i)) \
  CAN((sawC&B(a)) && (sent[a]&B(i)) && OURS(K(a,i),a,PEND), do_finalise(a,i)) \
  CAN((sawA&B(a)) && (sent[a]&B(i)) && OURS(K(a,i),a,PEND), do_void(K(a,i)))
#define ALL(a) PER(a,1) PER(a,2) \
  CAN((com&B(a)) && UNDECIDED(a), do_commit(a)) \
  CAN(sent[a] && UNDECIDED(a), do_void(K(a,0))) \
  CAN(sent[a] && !(sawC&B(a)) && COMMITTED(a), sawC=sawC|B(a)) \
  CAN(sent[a] && !(sawA&B(a)) && !COMMITTED(a) && !UNDECIDED(a), sawA=sawA|B(a))

proctype world() {
end:
  do
  ALL(0)
  ALL(1)
#if NO>2
  ALL(2)
#endif
  od
}

proctype reader() {                                              /* read committed of one slot */
  byte k, b, old;
end:
  do
  :: atomic { k<NAGG*POS-1 -> k++ }
  :: atomic { s[k].st==PEND -> b=s[k].by; old=LOGICAL(k) };
     atomic {
       if
       :: COMMITTED(b) && SHOWS(b,k) ->
#ifdef NOFOLLOW        /* mutation: a pending slot without events shows nothing */
          READ = (kind[b]!=ESC || old==0)
#else
          READ = (LOGICAL(k)==b+1)                               /* what the $tx slot holds for it */
#endif
       :: else -> READ = (old==0)                                /* nothing there when the read began */
       fi; assert(READ); k=0; b=0; old=0 }
  od
}

init { atomic {
  run owner(0); run owner(1);
#if NO>2
  run owner(2);
#endif
  run world(); run reader() } }
#ifdef REACH           /* not vacuous: this must be violated */
active proctype reach() { assert(!(REACH)) }
#endif
