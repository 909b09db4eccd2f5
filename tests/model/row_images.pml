/* row_images.pml - rows with the committed image in place and the intended one aside; tombstones; plain and native row writes.
 *
 * As in atomicity.pml: one write = one atomic step; `world` is the network (everything ever sent may arrive again, until a
 * tombstone's retention ends) and all bystanders at once; an owner may stop anywhere. The primary of command a is its own
 * slot p[a] (the first of $tx-<uuid>; an event slot behaves the same, see atomicity.pml). One attempt per command: a retry is
 * a new transaction. Image a+1 = "what command a put"; 0 = no image (absent, or a tombstone).
 */
#define OPEN 0
#define VOID 1
#define COMM 2
#define PUT 1
#define DEL 2
#define TX 0
#define PLAIN 1        /* one row, nothing validated: one conditional write */
#define NATIVE 2       /* all rows and p[a] in one atomic conditional write */
#define RES 3          /* escalated: holds both rows by intents without an image, then decides, then says what becomes of some */
#define NR 2
#define B(a) (1<<(a))
#if SCEN==1            /* insert, delete, insert again */
#define NO 3
hidden byte w[6] = {PUT,PUT, DEL,PUT, PUT,PUT}; hidden byte kind[3] = {TX,TX,TX}; 
#elif SCEN==2          /* with plain writes of row 0: insert and delete */
#define NO 3
hidden byte w[6] = {PUT,PUT, DEL,0, PUT,0};     hidden byte kind[3] = {TX,PLAIN,PLAIN};
#elif SCEN==3          /* with a native delete and a plain insert */
#define NO 3
hidden byte w[6] = {PUT,PUT, DEL,PUT, PUT,0};   hidden byte kind[3] = {TX,NATIVE,PLAIN};
#elif SCEN==4          /* rows there at the start (-DTHERE): a slow update, a delete, an insert */
#define NO 3
hidden byte w[6] = {PUT,PUT, DEL,PUT, PUT,PUT}; hidden byte kind[3] = {TX,TX,NATIVE};
#elif SCEN==5          /* everybody writes both rows: snapshots must be whole */
#define NO 2
hidden byte w[6] = {PUT,PUT, PUT,PUT, 0,0};     hidden byte kind[3] = {TX,TX,TX};
#elif SCEN==6
#define NO 3
hidden byte w[6] = {PUT,PUT, PUT,PUT, PUT,PUT}; hidden byte kind[3] = {TX,TX,NATIVE};
#elif SCEN==7          /* one reserves both rows and writes one, against a transaction and a plain write */
#define NO 3
hidden byte w[6] = {PUT,0, PUT,PUT, DEL,0};     hidden byte kind[3] = {RES,TX,PLAIN};
#elif SCEN==8          /* two that reserve */
#define NO 2
hidden byte w[6] = {PUT,0, DEL,PUT, 0,0};       hidden byte kind[3] = {RES,RES,TX};
#endif
#define OP(a,r) w[(a)*NR+(r)]
#define HOLDS(a,r) (OP(a,r) || kind[a]==RES)
#define NEW(a,r) (OP(a,r)==PUT -> (a)+1 : 0)

/* it: intent of command it-1; rs: it only holds the row, nothing is said yet; older: ghost, see lay() */
typedef Row { byte val; byte rev; byte it; bit rs; bit tomb; byte older };
Row row[NR];
byte p[NO];
byte seenv[NO*NR], seenr[NO*NR];            /* what the owner read: image and _rev */
byte sent, com, dead;                       /* network; dead: too old to be delivered */
byte fills[NR];                             /* network: to say what becomes of a held row */
byte sawH[NR];                              /* somebody has seen the row held and no more */
byte sawC, sawA;                            /* justification of finalise / undo requests */
byte gC, gAck, gTold; byte gval[NR];        /* ghosts: committed...; the committed image */
byte watch[NR];                             /* ghost: images that were committed at some time since the reader began */
hidden byte x;

#ifdef COUNTER         /* mutation: a counter instead of a unique _rev */
#define REV(a,r) (row[r].rev+1)
#else
#define REV(a,r) ((a)+1)
#endif
#define FREEAT(r,q) (row[r].it==0 && row[r].rev==(q))
#ifdef BUILD           /* mutation: build on a committed intent that is not finalised, replacing it */
#define CANPREP(a,r) (OP(a,r) && row[r].rev==seenr[(a)*NR+(r)] && (row[r].it==0 || (row[r].it!=a+1 && p[row[r].it-1]==COMM)))
#define IMAGE(r) ((row[r].it && p[row[r].it-1]==COMM) -> NEW(row[r].it-1,r) : row[r].val)
#else
#ifdef OVER_ALIVE      /* mutation: an undecided transaction's intent is written over */
#define GONE(b) 1
#else
#define GONE(b) (p[b]==VOID)
#endif
/* free, or the intent of an aborted one, which is written over */
#define CANPREP(a,r) (HOLDS(a,r) && row[r].rev==seenr[(a)*NR+(r)] && (row[r].it==0 || (row[r].it!=a+1 && GONE(row[r].it-1))))
#define IMAGE(r) row[r].val
#endif
#ifdef UNDO_ANY        /* mutation: undo does not check whose intent it is */
#define UNDOABLE(a,r) row[r].it
#else
#define UNDOABLE(a,r) (row[r].it==a+1)
#endif

inline check() { d_step {
  x=0;
  do
  :: x<NR ->                                                    /* IMAGE: what resolving shows is what was committed */
     if
     :: row[x].it && !row[x].rs && (gC & B(row[x].it-1)) -> assert(NEW(row[x].it-1,x)==gval[x])
     :: else -> assert(row[x].val==gval[x])
     fi;
     assert(row[x].val==0 || row[x].val>NO || (gC & B(row[x].val-1)));   /* RAW readers see only committed images */
     watch[x] = (watch[x] -> watch[x] | B(gval[x]) : 0); x++
  :: else -> break
  od; x=0;
  assert((gAck & gC)==gAck);                                    /* ACKED is for ever */
  assert((gTold & gC)==0) } }                                   /* TOLD aborted never commits */

inline lay(a,r) {                                               /* the after image goes into place */
  row[r].rs=0; row[r].rev=REV(a,r); row[r].val=NEW(a,r); row[r].tomb=0; row[r].older=0;
  if
  :: OP(a,r)==DEL ->
#ifdef NOTOMB          /* mutation: a delete deletes */
     row[r].rev=0
#else
     row[r].tomb=1; row[r].older=sent|com                       /* requests sent before the tombstone die before it does */
#endif
  :: else
  fi }
/* the base of every row written is the committed one: HELD, and no LOST update */
inline commit_row(a,r) {
  if
  :: kind[a]==RES && !OP(a,r) -> assert(row[r].it==a+1 && seenv[(a)*NR+(r)]==gval[r]) /* read, and not moved */
  :: OP(a,r) -> assert((kind[a]!=TX && kind[a]!=RES) || row[r].it==a+1); assert(kind[a]!=RES || !row[r].rs); assert(row[r].val==gval[r] && seenv[(a)*NR+(r)]==gval[r]);
     gval[r]=NEW(a,r)
  :: else
  fi }
inline do_commit(a) { d_step { assert(!(gC & B(a))); commit_row(a,0); commit_row(a,1); p[a]=COMM; gC=gC|B(a) }; check() }
#ifdef BLIND           /* mutation: a plain write does not look for intents */
#define DIRECT_OK(a) ((!OP(a,0) || row[0].rev==seenr[(a)*NR]) && (!OP(a,1) || row[1].rev==seenr[(a)*NR+1]))
#else
#define DIRECT_OK(a) ((!OP(a,0) || CANPREP(a,0)) && (!OP(a,1) || CANPREP(a,1)) && p[a]==OPEN)
#endif
inline do_direct(a) {                                           /* PLAIN and NATIVE */
  d_step { assert(!(gC & B(a))); commit_row(a,0); commit_row(a,1); gC=gC|B(a);
  if :: kind[a]==NATIVE -> p[a]=COMM :: else fi;
  if :: OP(a,0) -> lay(a,0) :: else fi; if :: OP(a,1) -> lay(a,1) :: else fi };
  check() }

proctype owner(byte a) {
  bit r, ok;
  if
  :: kind[a]==RES ->
     sent=sent|B(a);
     do                                                         /* hold: what moved meanwhile is held as it is by then */
     :: atomic { p[a]==OPEN -> seenv[a*NR+r]=row[r].val; seenr[a*NR+r]=row[r].rev };
        atomic {
          if
          :: row[r].it==a+1 -> ok=1
          :: CANPREP(a,r) -> row[r].it=a+1; row[r].rs=1; dead=dead&(255-B(a)); ok=1; check()
          :: else -> skip
          fi;
          if
          :: ok && r==0 -> r=1; ok=0
          :: ok && r==1 -> r=0; ok=0; break
          :: else
          fi }
     :: atomic { p[a]!=OPEN -> r=0; goto aborted }
     od;
     do                                                         /* decided: say what becomes of those that are written */
     :: OP(a,r) -> fills[r]=fills[r]|B(a);
        atomic {
          if
#ifdef UNFILLED        /* mutation: commit without the answer */
          :: skip
#endif
          :: row[r].it==a+1 -> row[r].rs=0; check()
          :: else -> r=0; goto aborted
          fi };
        if :: r==0 -> r=1 :: else -> r=0; break fi
     :: !OP(a,r) -> if :: r==0 -> r=1 :: else -> r=0; break fi
     od;
     com=com|B(a);
     if
     :: atomic { p[a]==OPEN -> do_commit(a); ok=1 }
     :: ok=0
     fi;
     goto asked
  :: else
  fi;
  do                                                            /* 1. read (the image in place is committed) */
  :: atomic { OP(a,r) -> seenv[a*NR+r]=IMAGE(r); seenr[a*NR+r]=row[r].rev; if :: r==0 -> r=1 :: else -> r=0; break fi }
  :: atomic { !OP(a,r) -> if :: r==0 -> r=1 :: else -> r=0; break fi }
  od;
  if
  :: kind[a]==TX ->
     sent=sent|B(a);
     do                                                         /* 2. prepare; a slow owner may send this at any later time */
     :: atomic {
          if
          :: !OP(a,r) || row[r].it==a+1 -> skip
          :: CANPREP(a,r) -> row[r].it=a+1; row[r].rs=0; dead=dead&(255-B(a)); check()
          :: else -> r=0; goto aborted
          fi;
          if :: r==0 -> r=1 :: else -> r=0; break fi }
     od;
     com=com|B(a);                                              /* 4. commit */
     if
     :: atomic { p[a]==OPEN -> do_commit(a); ok=1 }
     :: ok=0
     fi
  :: else ->
     com=com|B(a);
     if
#ifdef RESEND          /* mutation: the owner repeats its own request when the retention is over (a suspended machine) */
     :: atomic { DIRECT_OK(a) -> do_direct(a); ok=1 }
#else
     :: atomic { !(dead&B(a)) && DIRECT_OK(a) -> do_direct(a); ok=1 }
#endif
     :: ok=0
     fi
  fi;
asked:
  if :: ok -> atomic { gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop } :: else fi;
  if                                                            /* refused, or the answer got lost */
  :: kind[a]==PLAIN ->
     atomic {
       if
       :: row[0].rev==REV(a,0) -> gAck=gAck|B(a); check()
#ifdef PLAIN_LOST_IS_ABORTED
       :: else -> goto aborted                                  /* mutation: "mine = committed, anything else = aborted" */
#else
       :: else -> skip                                          /* a row forgets: the outcome is unknown */
#endif
       fi; goto stop }
  :: else ->
     atomic {
       if
       :: p[a]==COMM -> gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop
       :: else -> p[a]=VOID                                     /* fence, read again */
       fi }
  fi;
aborted:
  atomic { gTold=gTold|B(a); sawA=sawA|B(a); check() };
stop: skip
}

#define CAN(c,what) :: atomic { (c) -> what }
#ifdef GCVOID          /* mutation: the void of an aborted $tx is cleaned away */
#define CLEAN(a) CAN(p[a]==VOID, p[a]=OPEN)
#else
#define CLEAN(a)
#endif
#ifdef RELEASE_ANY     /* mutation: what was seen held and no more is released, whatever was said since */
#define RELEASABLE(a,r) ((sawH[r]&B(a)) && row[r].it==a+1)
#else
#define RELEASABLE(a,r) ((sawH[r]&B(a)) && row[r].it==a+1 && row[r].rs)
#endif
#define PER_ROW(a,r) \
  CAN((sent&B(a)) && !(dead&B(a)) && CANPREP(a,r), row[r].it=a+1; row[r].rs=(kind[a]==RES); check()) \
  CAN((fills[r]&B(a)) && row[r].it==a+1 && row[r].rs, row[r].rs=0; check()) \
  CAN(kind[a]==RES && row[r].it==a+1 && row[r].rs && !(sawH[r]&B(a)), sawH[r]=sawH[r]|B(a)) \
  CAN((sawC&B(a)) && RELEASABLE(a,r), row[r].it=0; row[r].rs=0; check()) \
  CAN((sawC&B(a)) && row[r].it==a+1 && !row[r].rs, row[r].it=0; lay(a,r); check()) \
  CAN((sawA&B(a)) && UNDOABLE(a,r), row[r].it=0; row[r].rs=0; check())
#define ALL(a) CLEAN(a) PER_ROW(a,0) PER_ROW(a,1) \
  CAN((com&B(a)) && (kind[a]==TX || kind[a]==RES) && p[a]==OPEN, do_commit(a)) \
  CAN((com&B(a)) && kind[a]!=TX && kind[a]!=RES && !(dead&B(a)) && DIRECT_OK(a), do_direct(a)) \
  CAN((sent&B(a)) && p[a]==OPEN, p[a]=VOID) \
  CAN((sent&B(a)) && p[a]==COMM && !(sawC&B(a)), sawC=sawC|B(a)) \
  CAN((sent&B(a)) && p[a]==VOID && !(sawA&B(a)), sawA=sawA|B(a))
#ifdef TTL             /* mutation: the store's expiry removes the tombstone although an intent has been laid upon it */
#define EXPIRABLE(r) row[r].tomb
#else
#define EXPIRABLE(r) (row[r].tomb && row[r].it==0)
#endif
#ifdef SHORT           /* mutation: the tombstone goes while older requests may still be delivered */
#define DIE(r)
#else
#define DIE(r) dead=dead|row[r].older;
#endif
#define PURGE(r) CAN(EXPIRABLE(r), row[r].tomb=0; row[r].rev=0; row[r].it=0; DIE(r) row[r].older=0; check())

proctype world() {
end:
  do
  ALL(0)
  ALL(1)
#if NO>2
  ALL(2)
#endif
  PURGE(0)
  PURGE(1)
  od
}

/* read committed of row r: v its image, q its logical revision (of the transaction, when that has committed) */
inline read(r,v,q) {
  atomic { b=(row[r].rs -> 0 : row[r].it); v=row[r].val; q=row[r].rev; watch[r]=B(gval[r]) };
  if
  :: b ->
     atomic {
       if
       :: p[b-1]==COMM -> v=NEW(b-1,r); q=b
#ifdef DIRTY           /* mutation */
       :: p[b-1]==OPEN -> v=NEW(b-1,r)
#endif
       :: p[b-1]!=COMM
       fi; b=0 }
  :: else
  fi }
#ifdef SNAPSHOT
#ifdef RAWREV          /* "read revisions again" taken as: the _rev in the row */
#define Q(r,q) row[r].rev
#else
#define Q(r,q) q
#endif
proctype reader() {
  byte b, v0, v1, q0, q1, u, q;
end:
  do
  :: read(0,v0,q0); read(1,v1,q1);
#ifdef RAWREV
     read(0,u,q); if :: atomic { row[0].rev!=q0 -> goto again } :: atomic { row[0].rev==q0 } fi;
     if :: atomic { row[1].rev!=q1 -> goto again } :: atomic { row[1].rev==q1 } fi;
#else
     read(0,u,q); if :: atomic { q!=q0 -> goto again } :: atomic { q==q0 -> u=0; q=0 } fi;
     read(1,u,q); if :: atomic { q!=q1 -> goto again } :: atomic { q==q1 -> u=0; q=0 } fi;
#endif
     assert(v0==v1);                                            /* SNAPSHOT: both rows of one moment */
again: atomic { watch[0]=0; watch[1]=0; b=0; v0=0; v1=0; q0=0; q1=0; u=0; q=0 }
  od
}
#else
proctype reader() {
  byte b, v, q; bit r;
end:
  do
  :: if :: row[0].it -> r=0 :: row[1].it -> r=1 fi;
     read(r,v,q);
     atomic { assert(watch[r] & B(v));                          /* READ: linearizable, never dirty, never stale */
       watch[r]=0; v=0; q=0; r=0 }
  od
}
#endif

init { atomic {
#ifdef THERE
  row[0].val=NO+1; row[0].rev=REV(NO,0); row[1].val=NO+1; row[1].rev=REV(NO,1); gval[0]=NO+1; gval[1]=NO+1;
#endif
  run owner(0); run owner(1);
#if NO>2
  run owner(2);
#endif
  run world(); run reader() } }
#ifdef REACH
active proctype reach() { assert(!(REACH)) }
#endif
